/* verbs.c - all that davit can do, and what it says about it. */
#include "base/defs.h"
#include "cli/cli.h"

#define KINDS                                                                                      \
    "KIND is pods, nodes, claims, templates, slices, classes, taintrules, events, leases,\n"       \
    "namespaces, configmaps, secrets or serviceaccounts; the API's own names (resourceclaims,\n"   \
    "ResourceClaim, po) do as well. "

static const char get_help[] =
    KINDS "all is pods, claims, templates, slices and classes.\n\n"
          "  davit get claims                     in the namespace default\n"
          "  davit get pods,claims -A -o wide     in all namespaces, with all columns\n"
          "  davit get slices -l tier=fast\n"
          "  davit get claim/gpu-claim -o yaml\n"
          "  davit get pods -w                    and what changes, until Ctrl-C";

static const char watch_help[] = KINDS "\n\n"
                                       "  davit watch claims -A\n"
                                       "  davit watch pod train-0 -o yaml";

static const char wait_help[] =
    "Waits until every object that is named is as --for says, and ends with 1 when that takes "
    "longer\n"
    "than --timeout. An object that is not there is a failure, but with --for delete.\n\n"
    "  davit wait pod/train-0 --for condition=Ready --timeout 5m\n"
    "  davit wait claims -l job=train --for 'jsonpath={.status.allocation}'\n"
    "  davit wait pod train-0 --for jsonpath='{.status.phase}'=Succeeded\n"
    "  davit wait pod train-0 --for delete";

static const char describe_help[] = KINDS "Without a name: all of the namespace.\n\n"
                                          "  davit describe claim gpu-claim\n"
                                          "  davit describe node/n1";

static const char apply_help[] =
    "Objects that are there are changed where the file says otherwise (server-side apply, by the\n"
    "field manager davit); others are made. A folder is its *.yaml, *.yml and *.json files, by "
    "name.\n"
    "What fails is told with its file, document and line; the rest is applied, and the exit "
    "status\n"
    "is 1.\n\n"
    "  davit apply -f claim.yaml -f pods/\n"
    "  davit apply -f - --dry-run < claim.yaml\n"
    "  davit apply -f claim.yaml --force-conflicts";

static const char delete_help[] =
    KINDS "\n\n"
          "  davit delete claim a b\n"
          "  davit delete pods -l app=train --wait=false\n"
          "  davit delete -f pods/ --ignore-not-found\n"
          "  davit delete pod stuck --force           also when its node does not answer";

static const char explain_help[] =
    "Without a name: all that waits, a line for those that are alike, the nearest miss first, be "
    "it\n"
    "for devices, resources of plugins, cpu, memory, a node without taints, or for the pod's "
    "node.\n"
    "With one: for each node whether the claim, or all claims of the pod together, can be "
    "allocated\n"
    "there, and for the best node, or that of --node, what speaks against each device, the "
    "nearest\n"
    "miss first. With -f all objects are read from files and no server is asked: slices, classes,\n"
    "claims, nodes, taint rules, templates and pods, of any version of the API.\n"
    "--all-pending prints a line for each pod that waits, in all namespaces unless -n names one.\n"
    "With --watch it looks every two seconds, and prints what has changed, until all is "
    "allocated.\n"
    "Exit status: 0 it is allocated or can be, 3 it cannot.\n\n"
    "  davit explain\n"
    "  davit explain claim train-0\n"
    "  kubectl davit explain --all-pending      any cluster, with the kubeconfig of kubectl\n"
    "  davit explain claim train-0 -n ml --node n1 --all\n"
    "  kubectl get pods,resourceclaims,resourceslices,deviceclasses,nodes -A -o yaml > dump.yaml\n"
    "  davit explain -f dump.yaml\n"
    "  davit explain claim train-0 -n ml -f dump.yaml";

static const char logs_help[] =
    "Prints what a container has written, to standard output and standard error alike. A pod with "
    "one\n"
    "container needs no -c. Where a container was started again, --previous is the log of its "
    "last\n"
    "instance. Only what is in the present file is shown: a log is set aside at 10 MiB.\n\n"
    "  davit logs train-0\n"
    "  davit logs train-0 -c main -f --tail 20\n"
    "  davit logs train-0 --previous --timestamps\n"
    "  davit logs pod/train-0 --all-containers --since 5m";

static const char exec_help[] =
    "Runs a command in a container that runs, and ends with its exit status. What stands after --\n"
    "is the command, a word each; a shell is one only when it is named. A pod with one container\n"
    "needs no -c.\n\n"
    "  davit exec train-0 -- nvidia-smi\n"
    "  davit exec -it train-0 -c main -- sh\n"
    "  davit exec -i train-0 -- tar x -C /data < data.tar";

static const char attach_help[] = "Joins the process that a container began with: its output from "
                                  "now on and, with -i, its input\n"
                                  "if the container has one (stdin: true). Ctrl-C ends davit, and "
                                  "not the process; with -t it is\n"
                                  "the process's.\n\n"
                                  "  davit attach train-0\n"
                                  "  davit attach -it train-0 -c main";

static const char port_forward_help[] =
    "Listens on ports of this machine, on 127.0.0.1 alone, and carries what comes there to ports "
    "of\n"
    "the pod. LOCAL:REMOTE names both; :REMOTE takes a local port that is free. It goes on until\n"
    "Ctrl-C, or until the pod is gone.\n\n"
    "  davit port-forward train-0 8080\n"
    "  davit port-forward train-0 8888:80 :6006";

static const char token_help[] =
    "create prints the new token, which is told this once; with --write-kubeconfig it goes into a "
    "file\n"
    "with the server's address and certificate instead. A driver's token reaches its own slices "
    "and\n"
    "claims on that node, in pools that are named after it (NODE, NODE/...) or by --pool, and "
    "what\n"
    "--also lets it read besides; a node's what is about that node. Only davitd has tokens, not "
    "other API\n"
    "servers.\n\n"
    "  davit token create --driver gpu.example.com --node n1 --write-kubeconfig gpu.kubeconfig\n"
    "  davit token create --driver gpu.example.com --node n1 --also 'pods: get,list,watch'\n"
    "  davit token create --driver nic.example.com --all-nodes\n"
    "  davit token create --node n2 --ttl 24h\n"
    "  davit token create --admin ada\n"
    "  davit token list\n"
    "  davit token revoke ID";

static const char cdi_help[] =
    "list shows the devices that the specs of this node have, resolve what a container with some "
    "of\n"
    "them gets, check what is wrong with specs (those of --cdi-dirs, or the files named), and "
    "inject\n"
    "writes it into the config.json of an OCI bundle, in one step; without names that is what the\n"
    "config's annotations ask for. With --pod and -c it is all that a container of an admitted "
    "pod\n"
    "gets from davitd: env, mounts, device nodes, annotations and CDI devices. Exit status 1: "
    "check\n"
    "found something.\n\n"
    "  davit cdi list\n"
    "  davit cdi resolve vendor.com/gpu=0 vendor.com/gpu=1 -o json\n"
    "  davit cdi check new-spec.yaml\n"
    "  davit cdi inject --bundle /run/bundle vendor.com/gpu=0\n"
    "  davit cdi inject --bundle /run/bundle --pod ml/train-0 -c main";

static const char record_help[] =
    "show prints what davitd --record DIR has recorded: connections, calls, messages, statuses; "
    "of\n"
    "a call that an option chooses, all of it. replay --as driver serves a recorded driver again: "
    "it\n"
    "registers in --kubelet-dir and answers as it did, so that its fault shows without its "
    "devices.\n"
    "replay --as kubelet makes the recorded calls on --socket, where a driver serves, and prints "
    "each\n"
    "field in which an answer differs. Exit status 3: some differ.\n\n"
    "  davit record show /var/lib/davit/record --status error\n"
    "  davit record show davit-00000007.dav --claim ml/train-0 -o json\n"
    "  davit record replay --as driver recording.dav --driver gpu.example.com --kubelet-dir "
    "/tmp/k\n"
    "  davit record replay --as kubelet recording.dav --socket /tmp/k/plugins/gpu/dra.sock";

static const char devices_help[] = "With -w the list comes again after every change.";

static const char admit_help[] =
    "FILE holds a Pod as YAML or JSON; - is standard input. The pod is admitted when it has all\n"
    "that its limits ask for. While a plugin that is known here has not come back, the call "
    "waits;\n"
    "--wait SECONDS says for how long. Exit status 3: the pod was refused.";

static const char options_help[] = "Plugins that want to be asked before a start are asked now. A "
                                   "pod with one container needs no\n"
                                   "-c. --as prints options for the command line of an engine, or "
                                   "for runc what goes into the config\n"
                                   "of a bundle.\n\n"
                                   "  davit options train-0\n"
                                   "  podman run $(davit options train-0 --as podman) IMAGE";

static const char container_help[] =
    "Where davitd has no container runtime it starts no containers: whoever does tells it, and "
    "the\n"
    "pod's status in the API says what is true. started: the container runs; with --pid its end "
    "is\n"
    "seen, too, and a code that nobody tells within 5 s is not known (137 "
    "ContainerStatusUnknown).\n"
    "ended: it has ended, with this code; the pod succeeds, fails or waits to be started again, "
    "as\n"
    "its restartPolicy says.\n\n"
    "  davit container started ml/train-0 main --pid 4711\n"
    "  davit container ended ml/train-0 main --exit-code 0";

static const char run_help[] =
    "Takes devices that are free, runs the command with them, and gives them back when it has "
    "ended.\n"
    "Names before -- are resources or classes, NAME=N; --class and --gpu ask for devices by class, "
    "with\n"
    "--count, --where and --same behind them. While others hold them, it waits for its turn. A "
    "command\n"
    "of podman, docker, nerdctl, runc, crun, apptainer or systemd-run gets options added; any "
    "other one\n"
    "is a process that gets environment variables. Exit status: the command's, 128 and the "
    "signal's\n"
    "number when one ended it; 3 when the devices cannot be had.\n\n"
    "  davit run --gpu 1 -- python3 train.py\n"
    "  davit run nvidia.com/gpu=2 -- podman run --rm -it pytorch bash\n"
    "  davit run --class gpu.nvidia.com --where 'memory >= 40Gi' --wait 30m -- docker run IMAGE\n"
    "  davit run serial=1 --isolate --max-time 1h -- minicom";

static const char lease_help[] =
    "Leases for scripts and units. take prints the environment to use, as lines NAME=value; with\n"
    "--env-file they go into a file, and the names of CDI devices are printed. It is held by the "
    "process\n"
    "that called davit, unless --pid, --unit or --cgroup says otherwise, and ends with it. give "
    "gives it\n"
    "back; renew counts --max-time anew from now; end takes it from its owner, who is asked to end "
    "first.\n\n"
    "  set -a; eval \"$(davit lease take --gpu 1)\"; set +a\n"
    "  davit lease take nvidia.com/gpu=1 --unit train.service --env-file /run/train.env\n"
    "  davit lease renew l-3f2c --max-time 2h\n"
    "  davit lease give l-3f2c\n"
    "  davit lease end l-3f2c --reason 'maintenance at 18:00'";

static const char leases_help[] = "The leases of everybody, and who waits for one. With -w the "
                                  "list comes again after every change.";

static const char claim_help[] =
    "list shows the claims that this node has prepared, is about to prepare or to unprepare, and "
    "what\n"
    "they wait for. release is for a driver that does not come back: the claim is forgotten "
    "without\n"
    "asking its drivers. What they prepared is not undone; the reason goes into the log, and into "
    "an\n"
    "event of the claim.\n\n"
    "  davit claim list\n"
    "  davit claim release ml/train-0 --force --reason 'card was removed, ticket 4711'";

static const char top_help[] =
    "Devices by NUMA node with their health and holders, claims, pods, plugins and, where a "
    "kubeconfig\n"
    "can be used, the newest events. Where the output is no terminal, or with --once, it is "
    "printed\n"
    "once, as text.\n\n"
    "  q quits   Tab, 1-5 choose a section   j, k, arrows, page keys scroll   / filters, Esc "
    "clears";

static const char ui_help[] =
    "Prints a link to davitd's page that signs in once, within two minutes; where there is a "
    "screen,\n"
    "and davit does not run as root, the link is opened as well. From another machine:\n\n"
    "  ssh -L 6443:127.0.0.1:6443 HOST sudo davit ui";

static const char state_help[] =
    "backup writes a copy of all durable state to FILE (-: standard output) while davitd runs;\n"
    "restore puts it into --state-dir while davitd does not, and keeps what was there.\n"
    "export writes the kubelet's files device-plugins/kubelet_internal_checkpoint,\n"
    "dra_manager_state and dra_health_state into --kubelet-dir from the state in --state-dir;\n"
    "import reads them from there. davitd must not be running for these.";

static const char completion_help[] =
    "Prints a script that lets the shell complete davit's words with the Tab key: verbs, options,\n"
    "values, kinds, and names of objects. Packages install it; by hand:\n\n"
    "  source <(davit completion bash)                 in ~/.bashrc\n"
    "  davit completion zsh > ~/.zfunc/_davit          in a folder of fpath\n"
    "  davit completion fish > ~/.config/fish/completions/davit.fish\n\n"
    "The scripts ask davit completion for -- WORD... what may stand in the last word's place.";

static const char simulate_help[] =
    "Makes nodes that are only objects, devices and pods in an API of its own, runs the "
    "controllers "
    "and\n"
    "the scheduler over it, and tells how many pods a second were bound, how long each waited, and "
    "what\n"
    "memory it took; then removes the pods and waits until everything is given back. For planning: "
    "the\n"
    "decisions, the writes and the disk are real. Exit status 3: not all pods found a place.\n\n"
    "  davit simulate --nodes 500 --devices 10 --pods 5000\n"
    "  davit simulate --shape cel --nodes 50 --pods 500 -o json";

static const char verify_help[] =
    "Starts the driver again and again, each time with a kubelet's side, an API and directories "
    "of\n"
    "its own, and tells what it does wrong. Placeholders in --exec: {device_plugins}, {registry},\n"
    "{plugins}, {kubelet}, {kubeconfig}, {node}, {cdi}, {state}, {run}, {instance}; in hooks also\n"
    "{pid}. explain tells all about a case.\n"
    "Exit status: 0 all passed or were skipped, 1 davit could not run cases, 3 a case failed.\n\n"
    "  davit verify device-plugin --exec './my-plugin --socket-dir {device_plugins}'\n"
    "  davit verify dra --exec './my-driver --kubelet-dir {kubelet} --kubeconfig {kubeconfig}'\n"
    "  davit verify dra --attach /tmp/verify\n"
    "  davit verify device-plugin --list\n"
    "  davit verify explain register.kubelet-restart";

static const char version_help[] =
    "With -o json also the libraries that davit was built with, and their versions.";

/* Aligned as an array of structures, the rows would be two hundred columns wide. */
/* clang-format off */
const struct dv_cli_verb dv_verbs[] = {
    {"get", "KIND[,KIND...] [NAME...] | KIND/NAME...",
     "objects of the API, as a table or whole",
     get_help, "output everywhere select w managed here", dv_cmd_get, DV_PEER_API},
    {"watch", "KIND [NAME]",
     "objects, and every change of them: get -w",
     watch_help, "output everywhere select managed", dv_cmd_watch, DV_PEER_API},
    {"wait", "KIND NAME... | KIND/NAME... | KIND -l LABELS",
     "until objects are as they shall be",
     wait_help, "everywhere select until", dv_cmd_wait, DV_PEER_API},
    {"describe", "KIND [NAME...] | KIND/NAME...",
     "all that matters of an object, and its events",
     describe_help, "everywhere select here", dv_cmd_describe, DV_PEER_API},
    {"apply", "-f FILE|DIR|-...",
     "make objects as files say",
     apply_help, "files apply dry", dv_cmd_apply, DV_PEER_API},
    {"delete", "KIND NAME... | KIND/NAME... | KIND -l LABELS | KIND --all | -f FILE",
     "remove objects, and wait until they are gone",
     delete_help, "everywhere select files delete gone dry", dv_cmd_delete, DV_PEER_API},
    {"logs", "POD | pod/POD",
     "what the containers of a pod have written",
     logs_help, "c logs", dv_cmd_logs, DV_PEER_API},
    {"exec", "POD [-c CONTAINER] -- COMMAND [ARGUMENT...]",
     "run a command in a container",
     exec_help, "c streams", dv_cmd_exec, DV_PEER_API},
    {"attach", "POD | pod/POD",
     "join the process of a container",
     attach_help, "c streams", dv_cmd_attach, DV_PEER_API},
    {"port-forward", "POD [LOCAL:]REMOTE...",
     "reach ports of a pod from this machine",
     port_forward_help, "", dv_cmd_port_forward, DV_PEER_API},
    {"explain", "[claim NAME | pod NAME | claim/NAME | --all-pending]",
     "why claims and pods wait: all, or one device by device",
     explain_help, "data files explain w", dv_cmd_explain, DV_PEER_API},
    {"token", "create | list | revoke ID...",
     "tokens for drivers, nodes and people",
     token_help, "data token", dv_cmd_token, DV_PEER_API},
    {"cdi", "list | resolve NAME... | check [FILE...] | inject --bundle DIR [NAME...]",
     "CDI specs, and what they add to containers",
     cdi_help, "output cdi c uid", dv_cmd_cdi, DV_PEER_NONE},
    {"run", "[RESOURCE=N...] -- COMMAND [ARGUMENT...]",
     "run a command with devices that are free",
     run_help, "want start", dv_cmd_run, DV_PEER_DAEMON},
    {"leases", "",
     "who holds devices without a pod, and who waits",
     leases_help, "w", dv_cmd_leases, DV_PEER_DAEMON},
    {"lease", "take [RESOURCE=N...] | give ID | renew ID | end ID",
     "take and give devices in scripts and units",
     lease_help, "want hold", dv_cmd_lease, DV_PEER_DAEMON},
    {"devices", "[RESOURCE|DRIVER] [DEVICE...]",
     "devices, their state, and who holds them",
     devices_help, "w", dv_cmd_devices, DV_PEER_DAEMON},
    {"plugins", "",
     "plugins, and why one fails",
     "", "", dv_cmd_plugins, DV_PEER_DAEMON},
    {"offers", "",
     "what is offered without a driver, and who has it",
     "", "", dv_cmd_offers, DV_PEER_DAEMON},
    {"admit", "-f FILE",
     "give a pod its devices",
     admit_help, "f wait", dv_cmd_admit, DV_PEER_DAEMON},
    {"release", "[NAMESPACE/]POD",
     "take back all that a pod holds",
     "", "n uid", dv_cmd_release, DV_PEER_DAEMON},
    {"options", "[NAMESPACE/]POD [-c CONTAINER]",
     "what to start a container with",
     options_help, "n uid c as", dv_cmd_options, DV_PEER_DAEMON},
    {"container", "started [NAMESPACE/]POD CONTAINER | ended [NAMESPACE/]POD CONTAINER",
     "tell that a container runs, or has ended",
     container_help, "n uid run", dv_cmd_container, DV_PEER_DAEMON},
    {"claim", "list | release [NAMESPACE/]NAME --force --reason TEXT",
     "claims as this node has them, and giving one up",
     claim_help, "n claim", dv_cmd_claim, DV_PEER_DAEMON},
    {"status", "",
     "the node at a glance, and what pods wait for",
     "", "", dv_cmd_status, DV_PEER_DAEMON},
    {"top", "",
     "the node on a screen, kept current",
     top_help, "top", dv_cmd_top, DV_PEER_DAEMON},
    {"ui", "",
     "a link to the page, which signs in",
     ui_help, "ui", dv_cmd_ui, DV_PEER_API},
    {"state", "backup FILE | restore FILE | import | export",
     "back up and restore; move from a kubelet to davit and back",
     state_help, "kubelet-dir state-dir", dv_cmd_state, DV_PEER_DAEMON},
    {"record", "show FILE|DIR... | replay --as driver|kubelet FILE|DIR...",
     "what davitd and plugins said to each other; again",
     record_help, "record", dv_cmd_record, DV_PEER_NONE},
    {"simulate", "",
     "how many pods a second the scheduler places, here",
     simulate_help, "data simulate", dv_cmd_simulate, DV_PEER_NONE},
    {"verify", "device-plugin | dra | explain CASE",
     "prove a driver right, without a cluster",
     verify_help, "verify", dv_cmd_verify, DV_PEER_NONE},
    {"completion", "bash | zsh | fish | for -- WORD...",
     "a script for the shell's Tab key",
     completion_help, "", dv_cmd_completion, DV_PEER_NONE},
    {"version", "",
     "the version, and what it was built with",
     version_help, "version", dv_cmd_version, DV_PEER_NONE},
    {"help", "[VERB]",
     "the verbs, or more about one",
     "", "", dv_cmd_help, DV_PEER_NONE},
};
/* clang-format on */
const size_t dv_n_verbs = DV_COUNT(dv_verbs);
