-- preflight's gate in slurmctld: asks the resident checker about every batch script before it is queued.
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

local function query(job, uid)
  local parts = { "user=" .. uid }
  if is_het(job) then parts[#parts + 1] = "component=1" end
  local nodes, per_node = job.min_nodes, count_per_node(job.tres_per_node)
  if per_node and not is_het(job) and nodes ~= slurm.NO_VAL and nodes == job.max_nodes then
    parts[#parts + 1] = "nodes=" .. nodes
    parts[#parts + 1] = "devices_per_node=" .. per_node
  end
  local reason = string.match(job.comment or "", "preflight%-override=(%S.*)")
  if reason then parts[#parts + 1] = "override=" .. encoded(reason) end
  if job.name then parts[#parts + 1] = "name=" .. encoded(job.name) end
  return table.concat(parts, "&"), reason
end

local function ask(job, uid)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(job.script)
  file:close()
  local parameters, reason = query(job, uid)
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

local function decide(job, uid)
  if not job.script or job.script == "" then return slurm.SUCCESS end -- salloc and srun: nothing to read
  local text, reason = ask(job, uid)
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

function slurm_job_submit(job, partitions, uid)
  local ok, result = pcall(decide, job, uid)
  if ok then return result end
  slurm.log_info("preflight: %s", tostring(result))
  slurm.log_user("preflight: the checker gave no verdict, the submission is %s", OPEN and "let in unchecked" or "refused")
  return OPEN and slurm.SUCCESS or slurm.ERROR
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
