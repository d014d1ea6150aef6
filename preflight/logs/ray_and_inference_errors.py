"""The messages of Ray, of engines that generate text (vLLM, SGLang) and of services in the network."""

from __future__ import annotations

from preflight.logs.cause_types import Cause, Signature

C = Cause
OF_ENGINES: tuple[Signature, ...] = (
    Signature(
        "engine-memory", C.MEMORY,
        r"larger than the (?:maximum number of tokens that can be stored in|available) KV cache"
        r"|No available memory for the cache blocks|Free memory on device .{0,80}is less than desired"
        r"|[Nn]ot enough memory\. Please try to increase --mem-fraction|Error in memory profiling"
        r"|KV cache is needed, which is larger",
        "the generation engine does not find as much device memory as it expects",
        "use a larger gpu_memory_utilization or mem_fraction_static if the training leaves room, otherwise a smaller "
        "one; use a shorter max_model_len or a larger tensor-parallel size for the rollout",
    ),
    Signature(
        "engine-length", C.CONFIG,
        r"is greater than the derived max_model_len|longer than the (?:maximum model length|model's context length)"
        r"|max_num_batched_tokens .{0,80}(?:smaller|less|greater|must)|exceeds? the (?:max_model_len|model's max\w*)"
        r"|[Pp]rompt length .{0,60}(?:exceeds|longer)",
        "a rollout length exceeds the limit of the engine",
        (
            "the prompt and the response together must fit max_model_len, which must fit max_position_embeddings of "
            "the model"
        ),
    ),
    Signature(
        "model-not-known", C.ENVIRONMENT,
        r"Model architectures \[.{0,120}\] (?:are not supported|failed to be inspected)|has no (?:vLLM|SGlang) implem"
        r"|does not recognize this architecture|Unrecognized (?:model in|configuration class)"
        r"|Tokenizer class \S+ does not exist|KeyError: '(?:qwen|llama|deepseek|glm|gemma|mi[sx]tral|internvl|kimi"
        r"|minicpm|gpt_oss|olmo|phi|baichuan|chatglm|ernie|hunyuan|mimo)\w*'"
        r"|KeyError: (?:<SupportedModel\.|['\"]?\w{1,60}For(?:CausalLM|ConditionalGeneration)\b)"
        r"|[Mm]odel[ _]type:? \S{0,40} (?:is )?not (?:yet )?supported"
        r"|No (?:\w{1,20} )?bridge (?:is )?(?:found|registered)",
        "a library does not know the model, or knows it under another name",
        "use a newer version of transformers, vLLM, SGLang or the bridge, because each knows only the models of its "
        "time",
    ),
    Signature(
        "tokenizer", C.ENVIRONMENT,
        r"data did not match any variant of untagged enum|Couldn't instantiate the backend tokenizer"
        r"|sentencepiece_processor\.cc|chat_template is not set|Cannot use (?:apply_)?chat[_ ]template"
        r"|does not have a padding token|TypeError: not a string$|can't load a tokenizer"
        r"|Error parsing line .{0,40}tiktoken"
        r"|[Pp]rocessor was not found|Can't load (?:image|feature) (?:processor|extractor)",
        "the tokenizer is missing, incomplete, or incompatible with the library that reads it",
        (
            "use the whole tokenizer folder, and versions of transformers and tokenizers that are not older than "
            "the tokenizer"
        ),
    ),
    Signature(
        "chat-template", C.DATA,
        r"jinja2\.exceptions",
        "the chat template rejected the messages, or cannot be rendered",
        "compare the roles and their order in the messages with the template, then check the template itself",
    ),
    Signature(
        "lora-targets", C.CONFIG,
        r"Target modules .{0,400} not found in the base model|No modules were targeted for adaptation"
        r"|Target module .{0,200} is not supported",
        "the LoRA target modules are not in the model or cannot be adapted",
        "use the module names of the model; `all-linear` selects all that can be adapted",
    ),
    Signature(
        "ray-resources", C.ENVIRONMENT,
        r"Total available (?:GPUs|NPUs|devices) \S+ is less than total desired|ActorUnschedulableError"
        r"|No available node types can fulfill|cannot be scheduled (?:right now|on any)|[Ii]nfeasible resource request"
        r"|Maximum number of retries reached \(\d+\)\. Cluster resources|[Tt]imed out waiting for placement group"
        r"|[Pp]lacement group creation timed out"
        r"|Insufficient cluster resources|Resource pool .{0,60}cannot be satisfied",
        "Ray did not provide the devices that the run requests",
        "`ray status` lists the nodes that joined; they must have enough devices for training, the rollout and the "
        "reward model",
    ),
    Signature(
        "ray-start", C.ENVIRONMENT,
        r"The current node timed out during startup|have not registered within the timeout"
        r"|RUNTIME_ENV_SETUP_FAILED|installing the runtime_env|Failed to fetch URI gcs"
        r"|RuntimeEnvSetupError|Failed to set up runtime environment"
        r"|Version mismatch: The cluster was started with|Unable to connect to GCS|Failed to connect to GCS"
        r"|GCS server .{0,60}(?:died|failed)|Could not (?:connect to|find) .{0,40}Ray (?:cluster|instance)"
        r"|raylet .{0,40}(?:died|failed to start)|Failed to register worker",
        "Ray could not start, or lost one of its nodes",
        "use the same versions of Ray and Python on all nodes, open the ports, and stop the Ray processes of older "
        "jobs; "
        "/tmp/ray/session_latest/logs has the reason",
        weak=True,
    ),
    Signature(
        "job-start", C.ENVIRONMENT,
        r"\bPMIX ERROR\b|srun: error: (?:Task launch|Application launch|Unable to|Munge|If munged)|Munge encode failed"
        r"|slurm\w*: error: (?:pyxis: (?:container start|failed|couldn't|error)|execve|Unable to)|enroot-\w+: "
        r"|ORTE (?:was unable|has lost)|Host key verification failed|Permission denied \(publickey"
        r"|Command '(?:\[')?(?:\S*/)?(?:ssh|pdsh|scp|docker|srun)\b"
        r"|mpirun was unable|There are not enough slots available|docker: Error|OCI runtime|nvidia-container-cli: "
        r"|Error response from daemon|[Ee]xec format error|ImagePullBackOff|CrashLoopBackOff|Unable to create step",
        "the scheduler, the container runtime or MPI could not start the processes on a node",
        "the line names the node and the step; check the node's services, permissions and image, and the launcher's "
        "log",
        weak=True,
    ),
    Signature(
        "ray-store", C.ENVIRONMENT,
        r"ObjectStoreFullError|OutOfDiskError|[Oo]bject store .{0,40}(?:is full|out of memory)"
        r"|is over \d+% full, available space",
        "Ray's object store, or its disk, is full",
        "give Ray more shared memory (--shm-size) or disk, or use smaller batches between its actors",
    ),
    Signature(
        "accelerator-of-actor", C.UNKNOWN,
        r"RayTaskError: \(AcceleratorError\)",
        "Ray reports that a device call failed in an actor",
        "the actor's own log (/tmp/ray/session_latest/logs/worker-*) contains the device's message",
        weak=True,
    ),
    Signature(
        "engine-died", C.COMMUNICATION,
        r"EngineDeadError|ClientResponseError: 5\d\d|EngineCore encountered an issue"
        r"|Engine core (?:initialization failed|proc \S+ died)"
        r"|Engine process failed to start|scheduler is dead|Server error '5\d\d|\" 50[0234] |\b50[0234] Server Error"
        r"|50[0234] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Timeout)"
        r"|Server process terminated|AsyncEngineDeadError|Background loop (?:has errored|is stopped)",
        "a service, such as the generation engine, failed or does not answer",
        "its own log contains the reason, which is the first exception of EngineCore, the scheduler or the worker",
        weak=True,
    ),
    Signature(
        "weights-to-engine", C.PROGRAM,
        r"Failed to update parameter online|[Ww]eight sync failed"
        r"|Failed to (?:update|load) weights? (?:from|online|in)",
        "weights could not be loaded into the engine that generates",
        "install compatible versions of the engine and the framework; otherwise compare the names and shapes that "
        "both use for the weights of this model",
    ),
    Signature(
        "remote-code", C.CONFIG,
        r"pass the argument `trust_remote_code=True`|requires you to execute the \w+ file",
        "the model comes with code that is not allowed to run",
        "trust_remote_code: true, if the source of the model is trusted",
    ),
    Signature(
        "tracking", C.ENVIRONMENT,
        r"wandb\.(?:errors|sdk)\.|\bwandb backend|\bCommError\b|api_key not configured|No API key configured"
        r"|swanlab\.\w*[Ee]rror"
        r"|mlflow\.exceptions|UsageError: (?:api_key|Permission)",
        "the experiment tracking service rejected the request or could not be reached",
        "check the API key and the network of the node, or use the offline mode",
    ),
    Signature(
        "network", C.COMMUNICATION,
        r"Max retries exceeded|NewConnectionError|NameResolutionError|Temporary failure in name resolution"
        r"|Name or service not known|Could not resolve host|getaddrinfo failed|CERTIFICATE_VERIFY_FAILED"
        r"|\b(?:Connect|Read)Timeout\b|No route to host|Network is unreachable|ServerDisconnectedError"
        r"|ClientConnectorError|APIConnectionError|StatusCode\.UNAVAILABLE|TimeoutError: \[Errno"
        r"|httpx\.\w+Error",
        "a network call timed out, or a host did not respond or could not be found",
        "from the job's node, check the name and port in the message; many nodes have no internet access",
        weak=True,
    ),
    Signature(
        "request-refused", C.ENVIRONMENT,
        r"Client error '40[13] |\" 40[13] (?:Forbidden|Unauthorized)",
        "a service rejected a request",
        "if the service belongs to the job, a proxy answered in its place: put the addresses of the nodes into "
        "no_proxy; otherwise check the key or the permissions",
        weak=True,
    ),
    Signature(
        "waited-too-long", C.COMMUNICATION,
        r"\b(?:Get)?TimeoutError\b",
        "a part of the program did not answer another part in time",
        "the cause is in the part that did not answer, so read its log; the message names the part, or its time limit",
        weak=True,
    ),
)  # fmt: skip
"""Texts of the engines and services of a run of reinforcement learning, and of the network."""
