-- preflight's gate in slurmctld: asks the resident checker about every batch script before it is queued, and again
-- when the devices of a job that waits are changed.
-- Installed by `preflight gate-install`; a checker that is down, slow or broken never stalls the controller.

local CURL = "@CURL@"
local SOCKET = "@SOCKET@"
local SECONDS = @SECONDS@            -- far below MessageTimeout: a client that gives up leaves a ghost job
local OPEN = @OPEN@                  -- without a verdict: true lets the job in unchecked, false refuses it
local MISSES, PAUSE = 2, 10          -- after so many answers that did not come it is not asked for so many seconds
local STANDING, MOST = 3600, 1000    -- seconds for which a user is harmless after a verdict; users that are remembered
local LONGEST_NAME, LONGEST_REASON = 200, 1000 -- bytes: the question has to fit into a command line, whatever users type
local FINAL = "some rules are final: no submission passes without a verdict\n"
local BURST = { strangers = 0.1, known = 0.6 } -- seconds of questions in a row: everybody waits for slurmctld meanwhile
local NEXT = 0.015                   -- seconds within which a submission that has waited for its turn is there

local missed = 0
local pauses = {}                    -- by user, or "all": { code, when it ends }, as the checker wishes
local judged = {}                    -- by user: when there was a verdict; a pause for all is not for them
local unasked, users = {}, 0         -- by user: submissions about which nobody asked; for the audit file
local spent = { strangers = 0, known = 0 } -- seconds; what lies between two submissions is given back
local ended = 0                      -- when the last submission was answered
local unjudged = 3                   -- the code of what has no verdict: 1 where rules are final, as the checker says

local function count_per_node(field) -- "gres:gpu:8", "gres:gpu:h100:8", "gres/npu:8", "gres:gpu"
  local total = nil
  for token in string.gmatch(field or "", "[^,]+") do
    if string.match(token, "^gres[:/][gn]pu") then
      total = (total or 0) + (tonumber(string.match(token, ":(%d+)$")) or 1)
    end
  end
  return total
end

local function is_het(job)           -- components of a heterogeneous job do not know the whole allocation
  local offset = job.het_job_offset
  return offset ~= nil and offset ~= slurm.NO_VAL and offset < 4294967294
end

local function quoted(text)          -- for the shell
  return "'" .. string.gsub(text, "'", "'\\''") .. "'"
end

local function encoded(text)         -- for the query
  return (string.gsub(text, "[^%w%-_%.~]", function(c) return string.format("%%%02X", string.byte(c)) end))
end

local function submitted(job)        -- what a submission asks for
  return { script = job.script, name = job.name, comment = job.comment, component = is_het(job),
    least = job.min_nodes, most = job.max_nodes, devices = job.tres_per_node }
end

local function changed(job, record)  -- what a job that waits will ask for, nil where a change is not about its devices
  local function new(name)
    local value = job[name]
    if value ~= nil and value ~= "" and value ~= slurm.NO_VAL then return value end
  end
  if (record.job_state or 1) % 256 ~= 0 then return nil end -- not pending: its script runs already
  if not (new("min_nodes") or new("max_nodes") or new("tres_per_node")) then return nil end
  return { script = record.script, name = record.name, comment = new("comment") or record.comment, change = true,
    component = (record.het_job_id or 0) ~= 0, least = new("min_nodes") or record.min_nodes,
    most = new("max_nodes") or record.max_nodes, devices = new("tres_per_node") or record.tres_per_node }
end

local function printable(text)       -- on one line of a log, whoever wrote it
  return (string.gsub(string.sub(text, 1, 500), "%c", function(c) return string.format("\\x%02X", string.byte(c)) end))
end

local function listed(counts)        -- "2001:3,2002:1"
  local parts = {}
  for user, count in pairs(counts) do
    if #parts < 200 then parts[#parts + 1] = user .. ":" .. count end
  end
  return table.concat(parts, ",")
end

local function not_asked(uid)
  if not unasked[uid] then users = users + 1 end
  if users > MOST then unasked, users = { others = 0 }, 1 end
  unasked[uid] = (unasked[uid] or 0) + 1
end

local function clock()               -- seconds, without starting a program
  local file = io.open("/proc/uptime", "r")
  local text = file and file:read("*l")
  if file then file:close() end
  return tonumber(string.match(text or "", "^[%d%.]+")) or os.time()
end

local function known(uid)            -- this user had a verdict not long ago
  local left = judged[uid] and os.time() - judged[uid]
  return left and left >= 0 and left < STANDING
end

local function give_back(now)        -- while no submission waited here, others had their turn
  local idle = now - ended
  if idle < NEXT then return end
  for whom, seconds in pairs(spent) do spent[whom] = math.max(0, seconds - idle) end
end

local function pause(whom, code, seconds)
  if pauses.size == MOST then pauses = { all = pauses.all } end
  pauses.size = (pauses.size or 0) + 1
  pauses[whom] = { code = code, till = os.time() + math.min(seconds, PAUSE) }
end

local function paused(uid)           -- the code that holds meanwhile, nil where the checker is asked
  local now = os.time()
  if spent.known >= BURST.known or not known(uid) and spent.strangers >= BURST.strangers then return unjudged end
  for _, whom in ipairs({ uid, "all", "dead" }) do
    local found = pauses[whom]
    local left = found and found.till - now or 0
    local harmless = whom == "all" and known(uid)
    if left > 0 and left <= PAUSE and not harmless then return found.code end -- more: somebody has set the clock
  end
end

local function wish(what)            -- the reason to override, and whether it is too long to count
  local reason = string.match(what.comment or "", "preflight%-override=(%S.*)")
  local long = reason ~= nil and #reason > LONGEST_REASON
  return not long and reason or nil, long
end

local function query(what, uid)
  local parts = { "user=" .. uid }
  if users > 0 then parts[#parts + 1] = "unasked=" .. listed(unasked) end
  if what.component then parts[#parts + 1] = "component=1" end
  if what.change then parts[#parts + 1] = "change=1" end
  local nodes, per_node = what.least, count_per_node(what.devices)
  if per_node and not what.component and nodes ~= slurm.NO_VAL and nodes == what.most then
    parts[#parts + 1] = "nodes=" .. nodes
    parts[#parts + 1] = "devices_per_node=" .. per_node
  end
  local reason = wish(what)
  if reason then parts[#parts + 1] = "override=" .. encoded(reason) end
  if what.name then parts[#parts + 1] = "name=" .. encoded(string.sub(what.name, 1, LONGEST_NAME)) end
  return table.concat(parts, "&"), reason
end

local function run(command, mark)    -- what curl received, its status of HTTP behind a mark; a second process would take longer
  local pipe = assert(io.popen("exec " .. command))
  local text = pipe:read("*a")
  pipe:close()
  local body, status = string.match(text, "^(.*)\n" .. mark .. "(%d+)")
  if status and status ~= "000" then return 0, body end
  return tonumber(string.match(text, "curl: %((%d+)%)")) or -1, string.gsub(text, mark .. "%d+", "")
end

local function account(rc)           -- a checker that hangs costs SECONDS a job, with locks held
  if rc == 0 then unasked, users = {}, 0 end
  missed = rc == 28 and missed + 1 or 0 -- 28: curl's own deadline
  if missed >= MISSES then
    missed = 0
    pause("dead", 3, PAUSE)
    slurm.log_info("preflight: the checker does not answer; it is not asked for %d seconds", PAUSE)
  end
end

local function ask(what, uid)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  local written = file:write(what.script)
  if not (file:close() and written) then
    os.remove(name)
    error("the script cannot be written: " .. name)
  end
  local parameters, reason = query(what, uid)
  local mark = string.gsub(name, "%W", "") .. "=" -- that of another body is not this one
  local form = "%s -q -s -S -H Expect: --connect-timeout %g --max-time %g --unix-socket %s --data-binary @%s -w %s %s 2>&1"
  local address, status = quoted("http://preflight/gate?" .. parameters), quoted("\\n" .. mark .. "%{http_code}")
  local rc, text = run(string.format(form, quoted(CURL), SECONDS, SECONDS, quoted(SOCKET), quoted(name), status, address), mark)
  os.remove(name)
  account(rc)
  if rc ~= 0 then
    not_asked(uid)
    error("the checker did not answer: " .. text)
  end
  return text, reason
end

local function tell(text)            -- all but the first line, which holds the code
  local first = true
  for line in string.gmatch(text, "[^\n]+") do
    if not first then slurm.log_user("%s", line) end
    first = false
  end
end

local function unchecked(noun)       -- the documented mode
  slurm.log_user("preflight: the checker gave no verdict, the %s is %s", noun, OPEN and "let in unchecked" or "refused")
  return OPEN and slurm.SUCCESS or slurm.ERROR
end

local function learn(text, code, uid) -- what the first line says beside the code
  local first = string.match(text, "^[^\n]*")
  local whom, seconds = string.match(first, " busy (%a+) (%d+)")
  if whom then pause(whom == "user" and uid or "all", code, tonumber(seconds)) end
  unjudged = string.find(first, " final", 1, true) and 1 or 3
  if whom == "all" or code > 1 then judged[uid] = nil else judged[uid] = os.time() end
  return judged[uid] and not string.find(first, " none", 1, true) -- there is a run, and a verdict on it
end

local function asked(what, uid)      -- the same, and what it costs is accounted for
  local before, whom = clock(), known(uid) and "known" or "strangers"
  local ok, text, reason = pcall(ask, what, uid)
  local code = ok and tonumber(string.match(text, "^(%d+)"))
  if code and learn(text, code, uid) then whom = "known" end
  if ok then                         -- waits without an answer have their own bound: MISSES
    spent[whom] = math.min(spent[whom] + math.max(0, clock() - before), BURST[whom])
  end
  if not ok then error(text, 0) end
  if not code then error("this is not an answer: " .. text) end
  return text, reason, code
end

local function decide(what, uid, noun)
  if not what or not what.script or what.script == "" then return slurm.SUCCESS end -- salloc and srun: nothing to read
  local text, reason = nil, nil
  local _, long = wish(what)
  if long then slurm.log_user("preflight: a reason to override has at most %d characters; this one does not count", LONGEST_REASON) end
  local code = paused(uid)
  if code then
    not_asked(uid)
    text = code .. " busy\npreflight: no verdict: the checker is busy\n" .. (code == 1 and FINAL or "")
  else
    text, reason, code = asked(what, uid)
  end
  if code == 0 and reason then slurm.log_info("preflight: uid=%d override=%s", uid, printable(reason)) end
  tell(text)
  if code == 0 then return slurm.SUCCESS end
  if code == 1 then return slurm.ERROR end
  local busy = string.match(text, "^%d+ busy")
  if not busy then slurm.log_info("preflight: uid=%d no verdict: %s", uid, printable(text)) end
  return unchecked(noun)
end

local function answered(read, uid, noun)
  give_back(clock())
  local ok, result = pcall(function() return decide(read(), uid, noun) end)
  ended = clock()
  if ok then return result end
  slurm.log_info("preflight: %s", printable(tostring(result)))
  return unchecked(noun)
end

function slurm_job_submit(job, partitions, uid)
  return answered(function() return submitted(job) end, uid, "submission")
end

function slurm_job_modify(job, record, partitions, uid)
  return answered(function() return changed(job, record) end, uid, "change")
end

return slurm.SUCCESS
