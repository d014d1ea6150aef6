-- preflight's gate on the client: checks the script as the user, before any request goes to the controller.
-- It can be bypassed by a private SLURM_CONF; job_submit.lua enforces. Stdin and --wrap are left to the server.

local PREFLIGHT = "@PREFLIGHT@"      -- absolute path: the caller's PATH is not ours
local SECONDS = @SECONDS@
local KILL = "@KILL@"                -- timeout(1): the whole command ends in time, whatever hangs in it
local MOST = 4194304                 -- bytes of a script, as in Slurm
local LONGEST_REASON = 1000          -- bytes: the command has to fit into a command line
local START = 3                      -- seconds that the command may take to start
local OPEN = @OPEN@

local function quoted(text)
  return "'" .. string.gsub(text, "'", "'\\''") .. "'"
end

local function per_node(options)
  local count = string.match(options["gpus-per-node"] or "", "(%d+)$")
  if count then return tonumber(count) end
  local gres = string.match(options["gres"] or "", "[gn]pu[^,]*")
  if gres then return tonumber(string.match(gres, ":(%d+)$")) or 1 end
  return nil
end

local function content(path)         -- its beginning: #SBATCH lines stand there, and a device never ends
  local file = io.open(path, "rb")
  if not file then return "" end
  local text = file:read(MOST) or ""
  file:close()
  return text
end

local function is_component(script)  -- one of a heterogeneous job: it does not know the whole allocation
  return string.find("\n" .. content(script), "\n#SBATCH[^\n]*hetjob")
    or string.find(content("/proc/self/cmdline"), "%z:%z")
end

local function allocation(options, script)
  if is_component(script) then return " --component" end
  local nodes = string.match(options["nodes"] or "", "^(%d+)$")
  local devices = per_node(options)
  if not nodes or not devices then return "" end
  return string.format(" --nodes %s --devices-per-node %d", nodes, devices)
end

local function decide(options)
  local script = options["argv"] and options["argv"][1]
  if options["type"] ~= "sbatch" or not script or script == "" then return slurm.SUCCESS end
  local reason = string.match(options["comment"] or "", "preflight%-override=(%S.*)")
  if reason and #reason > LONGEST_REASON then
    slurm.log_error("preflight: a reason to override has at most %d characters; this one does not count", LONGEST_REASON)
    reason = nil
  end
  local more = reason and (" --override=" .. quoted(reason)) or ""
  local command = string.format("%s -k 1 %g %s gate --script=%s%s%s --follow --timeout %g -f text 2>&1; echo __rc=$?",
    quoted(KILL), SECONDS + START, quoted(PREFLIGHT), quoted(script), allocation(options, script), more, SECONDS)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  local code = tonumber(string.match(text, "__rc=(%d+)%s*$"))
  text = string.gsub(text, "__rc=%d+%s*$", "")
  if code == 1 then
    for line in string.gmatch(text, "[^\n]+") do slurm.log_error("%s", line) end
    return slurm.ERROR
  end
  if code == 0 then return slurm.SUCCESS end
  for line in string.gmatch(text, "[^\n]+") do slurm.log_error("%s", line) end
  error("no verdict")
end

function slurm_cli_setup_defaults(options, early_pass)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  local ok, result = pcall(decide, options)
  if ok then return result end
  local mode = OPEN and "let in unchecked" or "refused"
  slurm.log_error("preflight: the checker gave no verdict, the submission is %s", mode)
  return OPEN and slurm.SUCCESS or slurm.ERROR
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return slurm.SUCCESS
end

return slurm.SUCCESS
