-- preflight's gate in slurmctld: asks the resident checker about every batch script before it is queued, and again
-- when the devices of a job that waits are changed.
-- Installed by `preflight gate-install`; a checker that is down, slow or broken never stalls the controller.

local CURL = "@CURL@"
local SOCKET = "@SOCKET@"
local SECONDS = @SECONDS@            -- far below MessageTimeout: a client that gives up leaves a ghost job
local OPEN = @OPEN@                  -- without a verdict: true lets the job in unchecked, false refuses it

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

local function query(what, uid)
  local parts = { "user=" .. uid }
  if what.component then parts[#parts + 1] = "component=1" end
  if what.change then parts[#parts + 1] = "change=1" end
  local nodes, per_node = what.least, count_per_node(what.devices)
  if per_node and not what.component and nodes ~= slurm.NO_VAL and nodes == what.most then
    parts[#parts + 1] = "nodes=" .. nodes
    parts[#parts + 1] = "devices_per_node=" .. per_node
  end
  local reason = string.match(what.comment or "", "preflight%-override=(%S.*)")
  if reason then parts[#parts + 1] = "override=" .. encoded(reason) end
  if what.name then parts[#parts + 1] = "name=" .. encoded(what.name) end
  return table.concat(parts, "&"), reason
end

local function ask(what, uid)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(what.script)
  file:close()
  local parameters, reason = query(what, uid)
  local command = string.format("%s -s -S --max-time %g --unix-socket %s --data-binary @%s %s 2>&1; echo __rc=$?",
    CURL, SECONDS, quoted(SOCKET), quoted(name), quoted("http://preflight/gate?" .. parameters))
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  os.remove(name)
  local rc = tonumber(string.match(text, "__rc=(%d+)%s*$"))
  if rc ~= 0 then error("the checker did not answer: " .. text) end
  return string.gsub(text, "__rc=%d+%s*$", ""), reason
end

local function tell(text)
  local first = true
  for line in string.gmatch(text, "[^\n]+") do
    if not first then slurm.log_user("%s", line) end
    first = false
  end
end

local function decide(what, uid)
  if not what or not what.script or what.script == "" then return slurm.SUCCESS end -- salloc and srun: nothing to read
  local text, reason = ask(what, uid)
  local code = tonumber(string.match(text, "^(%d+)"))
  if code == 0 then
    if reason then slurm.log_info("preflight: uid=%d override=%s", uid, reason) end
    tell(text)
    return slurm.SUCCESS
  end
  if code == 1 then
    tell(text)
    return slurm.ERROR
  end
  error("no verdict: " .. text)
end

local function answered(read, uid, noun)
  local ok, result = pcall(function() return decide(read(), uid) end)
  if ok then return result end
  slurm.log_info("preflight: %s", tostring(result))
  slurm.log_user("preflight: the checker gave no verdict, the %s is %s", noun, OPEN and "let in unchecked" or "refused")
  return OPEN and slurm.SUCCESS or slurm.ERROR
end

function slurm_job_submit(job, partitions, uid)
  return answered(function() return submitted(job) end, uid, "submission")
end

function slurm_job_modify(job, record, partitions, uid)
  return answered(function() return changed(job, record) end, uid, "change")
end

return slurm.SUCCESS
