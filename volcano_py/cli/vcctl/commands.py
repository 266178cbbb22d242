"""The commands of `vcctl` and of the programs beside it: one table, from which help and completion are made as well."""

from typing import Final

from volcano_py.cli.vcctl.flags import NUMBER, SWITCH, Command, Flag

_HERE: Final = "volcano_py.cli.vcctl"
_RESOURCES: Final = "cpu=1000m,memory=100Mi"
FORMATS: Final = ("json", "yaml", "wide", "name")

MASTER: Final = Flag("master", "s", "", "address of the API server, instead of the one in the kubeconfig")
KUBECONFIG: Final = Flag(
    "kubeconfig", "k", "", "kubeconfig file; else $KUBECONFIG, the pod's account or ~/.kube/config", values="files"
)
CONTEXT: Final = Flag("context", "", "", "context of the kubeconfig", values="contexts")
SERVER: Final = (MASTER, KUBECONFIG, CONTEXT)

OUTPUT: Final = Flag("output", "o", "", "form of the output", choices=FORMATS)
WATCH: Final = Flag("watch", "w", "", "print changes as they happen, until Ctrl-C", SWITCH)
EVERYWHERE: Final = Flag("all-namespaces", "A", "", "all namespaces", SWITCH)
LABELS: Final = Flag("selector", "l", "", "only objects with these labels, such as team=a,tier!=test")


def _namespace(of: str) -> Flag:
    return Flag("namespace", "n", "default", f"namespace of the {of}", values="namespaces")


def _name(of: str, kind: str) -> Flag:
    return Flag("name", "N", "", f"name of the {of}", values=kind)


_JOB: Final = (_namespace("job"), _name("job", "jobs"))
_RUN: Final = (
    Flag("image", "i", "busybox", "container image"),
    Flag("min", "m", "1", "pods that must run at the same time (minAvailable)", NUMBER),
    Flag("replicas", "r", "1", "pods", NUMBER),
    Flag("requests", "R", _RESOURCES, "resources that each pod requests"),
    Flag("limits", "L", _RESOURCES, "resources that each pod may use"),
    Flag("scheduler", "S", "volcano", "scheduler of the pods"),
)
_QUEUE_NAME: Final = Flag("name", "n", "", "name of the queue", values="queues")
_DEBUG: Final = Flag(
    "scheduler-url",
    "",
    "",
    "where the scheduler serves /debug; else its pods are asked through the API server, and `none` asks nobody",
)
_AWAITED: Final = ("phase=Running", "phase=Completed", "phase=Aborted", "phase=Failed", "phase=Terminated", "delete")
_WIDE: Final = (OUTPUT, WATCH)

VCCTL: Final = (
    Command(("vcctl",), "run jobs, look after queues, and find out why something waits"),
    Command(("vcctl", "job"), "run, list, stop and explain jobs (vcjobs)"),
    Command(
        ("vcctl", "job", "run"),
        "create a job of one task, or the jobs of a file",
        f"{_HERE}.job_writing:run_job",
        (
            *_RUN[:1],
            _namespace("job"),
            Flag("name", "N", "", "name of the new job"),
            *_RUN[1:],
            Flag("queue", "q", "", "queue of the job", values="queues"),
            Flag("filename", "f", "", "YAML file with a job, instead of the flags above", values="files"),
            *SERVER,
        ),
        "vcctl job run -N hello -i busybox -r 3 -m 3 -R cpu=500m,memory=64Mi",
        "name",
    ),
    Command(
        ("vcctl", "job", "list"),
        "list jobs with their phase and pods",
        f"{_HERE}.job_reading:list_jobs",
        (
            Flag("queue", "q", "", "only jobs of this queue", values="queues"),
            _namespace("jobs"),
            Flag("scheduler", "S", "", "only jobs of this scheduler"),
            EVERYWHERE,
            Flag("selector", "", "", "only jobs with this text in their name, or with these labels (team=a)"),
            *_WIDE,
            *SERVER,
        ),
        "vcctl job list -A --queue research",
    ),
    Command(
        ("vcctl", "job", "view"),
        "show one job with its tasks, conditions and events",
        f"{_HERE}.job_reading:view_job",
        (*_JOB, OUTPUT, *SERVER),
        "vcctl job view -N train -n team-a",
        "name",
    ),
    Command(
        ("vcctl", "job", "why"),
        "explain on one screen why a job (or a PodGroup) waits",
        f"{_HERE}.explaining:why_job",
        (*_JOB, _DEBUG, *SERVER),
        "vcctl job why train -n team-a",
        "name",
    ),
    Command(
        ("vcctl", "job", "wait"),
        "wait until a job has a phase, or is deleted",
        f"{_HERE}.waiting:wait_job",
        (
            *_JOB,
            Flag("for", "", "", "phase=PHASE (several with a comma), or delete", offers=_AWAITED),
            Flag("timeout", "", "30s", "give up after this time, such as 90s, 10m or 2h; 0 does not wait"),
            *SERVER,
        ),
        "vcctl job wait train --for=phase=Completed --timeout=2h",
        "name",
    ),
    Command(
        ("vcctl", "job", "logs"),
        "print what the pods of a job, or of one of its tasks, have written",
        f"{_HERE}.logs:print_logs",
        (
            *_JOB,
            Flag("task", "t", "", "only pods of this task"),
            Flag("index", "", "", "only the pod with this index in its task", NUMBER),
            Flag("container", "c", "", "container; else the first one of each pod"),
            Flag("follow", "f", "", "go on until the pods end", SWITCH),
            Flag("previous", "p", "", "what the container wrote before it was started again", SWITCH),
            Flag("tail", "", "", "only this many last lines of each pod", NUMBER),
            *SERVER,
        ),
        "vcctl job logs train --task worker --index 0 -f",
        "name",
    ),
    Command(
        ("vcctl", "job", "suspend"),
        "abort a job; it can be resumed",
        f"{_HERE}.job_writing:suspend_job",
        (*_JOB, *SERVER),
        "vcctl job suspend -N train",
        "name",
    ),
    Command(
        ("vcctl", "job", "resume"),
        "start an aborted job again",
        f"{_HERE}.job_writing:resume_job",
        (*_JOB, *SERVER),
        "vcctl job resume -N train",
        "name",
    ),
    Command(
        ("vcctl", "job", "delete"),
        "delete a job and its pods",
        f"{_HERE}.job_writing:delete_job",
        (*_JOB, *SERVER),
        "vcctl job delete -N train",
        "name",
    ),
    Command(("vcctl", "queue"), "create, list, open, close and explain queues"),
    Command(
        ("vcctl", "queue", "create"),
        "create a queue",
        f"{_HERE}.queue:create_queue",
        (
            Flag("name", "n", "test", "name of the new queue"),
            Flag("weight", "w", "1", "its share, relative to its siblings", NUMBER),
            Flag("state", "S", "Open", "accepted for old scripts: the controllers decide about the state"),
            *SERVER,
        ),
        "vcctl queue create -n research -w 3",
        "name",
    ),
    Command(
        ("vcctl", "queue", "delete"),
        "delete a closed queue",
        f"{_HERE}.queue:delete_queue",
        (_QUEUE_NAME, *SERVER),
        "vcctl queue delete -n research",
        "name",
    ),
    Command(
        ("vcctl", "queue", "get"),
        "show one queue",
        f"{_HERE}.queue:get_queue",
        (_QUEUE_NAME, OUTPUT, *SERVER),
        "vcctl queue get -n research",
        "name",
    ),
    Command(
        ("vcctl", "queue", "list"),
        "list queues with the number of PodGroups in each phase",
        f"{_HERE}.queue:list_queues",
        (LABELS, *_WIDE, *SERVER),
        "vcctl queue list -o wide",
    ),
    Command(
        ("vcctl", "queue", "why"),
        "explain on one screen why jobs of a queue wait",
        f"{_HERE}.explaining:why_queue",
        (_QUEUE_NAME, _DEBUG, *SERVER),
        "vcctl queue why research",
        "name",
    ),
    Command(
        ("vcctl", "queue", "operate"),
        "open or close a queue, or change its weight",
        f"{_HERE}.queue:operate_queue",
        (
            _QUEUE_NAME,
            Flag("weight", "w", "0", "new weight, for action update", NUMBER),
            Flag("action", "a", "", "open, close or update", offers=("open", "close", "update")),
            *SERVER,
        ),
        "vcctl queue operate -n research -a close",
        "name",
    ),
    Command(("vcctl", "pod"), "list the pods of jobs"),
    Command(
        ("vcctl", "pod", "list"),
        "list pods of jobs",
        f"{_HERE}.pod:list_pods",
        (
            Flag("queue", "q", "", "only pods of this queue", values="queues"),
            Flag("job", "j", "", "only pods of this job", values="jobs"),
            _namespace("pods"),
            EVERYWHERE,
            LABELS,
            *_WIDE,
            *SERVER,
        ),
        "vcctl pod list -j train",
    ),
    *(
        command
        for group, title, module in (
            ("jobflow", "job flow", "flow"),
            ("jobtemplate", "job template", "flow"),
        )
        for command in (
            Command(("vcctl", group), f"create, list and delete {title}s"),
            Command(
                ("vcctl", group, "create"),
                f"create the {title}s of a file",
                f"{_HERE}.{module}:create_{group}",
                (Flag("file", "f", "", "YAML file; it may hold several, split by ---", values="files"), *SERVER),
                f"vcctl {group} create -f {group}.yaml",
            ),
            Command(
                ("vcctl", group, "list"),
                f"list {title}s",
                f"{_HERE}.{module}:list_{group}",
                (
                    _namespace(f"{title}s"),
                    EVERYWHERE,
                    LABELS,
                    *_WIDE,
                    *SERVER,
                ),
                f"vcctl {group} list -n team-a",
            ),
            Command(
                ("vcctl", group, "get"),
                f"show one {title}",
                f"{_HERE}.{module}:get_{group}",
                (_namespace(title), _name(title, f"{group}s"), OUTPUT, *SERVER),
                f"vcctl {group} get -N nightly",
                "name",
            ),
            Command(
                ("vcctl", group, "describe"),
                f"print a {title} in full, or all of a namespace",
                f"{_HERE}.{module}:describe_{group}",
                (
                    _namespace(title),
                    _name(title, f"{group}s"),
                    Flag("format", "o", "yaml", "yaml or json", choices=("yaml", "json")),
                    *SERVER,
                ),
                f"vcctl {group} describe -N nightly -o json",
                "name",
            ),
            Command(
                ("vcctl", group, "delete"),
                f"delete a {title}, or those of a file",
                f"{_HERE}.{module}:delete_{group}",
                (
                    _namespace(title),
                    _name(title, f"{group}s"),
                    Flag("file", "f", "", f"YAML file with the {title}s to delete", values="files"),
                    *SERVER,
                ),
                f"vcctl {group} delete -N nightly",
                "name",
            ),
        )
    ),
    Command(
        ("vcctl", "version"),
        "print the version of this program",
        f"{_HERE}.version:print_version",
        (),
        "vcctl version",
    ),
    Command(
        ("vcctl", "completion"),
        "print a script that completes commands, flags and names of the cluster in your shell",
        f"{_HERE}.completion:print_script",
        (Flag("shell", "", "", "bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        "source <(vcctl completion bash)",
        "shell",
    ),
)
"""All commands of `vcctl`, groups before their commands."""

_SHORT_NAME: Final = Flag("name", "n", "", "name of the job", values="jobs")
_SHORT_NAMESPACE: Final = Flag("namespace", "N", "default", "namespace of the job", values="namespaces")

ALONE: Final = {
    "vsub": Command(
        ("vsub",),
        "create a job of one task",
        f"{_HERE}.job_writing:submit",
        (
            Flag("name", "n", "", "name of the new job"),
            Flag(
                "namespace", "N", "", "namespace; else $VOLCANO_DEFAULT_JOB_NAMESPACE or default", values="namespaces"
            ),
            Flag("image", "i", "", "container image; else $VOLCANO_DEFAULT_IMAGE or busybox"),
            *_RUN[1:5],
            Flag("scheduler", "S", "", "scheduler of the pods; else $VOLCANO_SCHEDULER_NAME or volcano"),
            Flag("command", "c", "", "command of the container, in the words of a shell"),
            *SERVER,
        ),
        "vsub -n hello -c 'sh -c \"sleep 10\"'",
        "name",
    ),
    "vjobs": Command(
        ("vjobs",),
        "list jobs, or show one",
        f"{_HERE}.job_reading:jobs_or_job",
        (
            _SHORT_NAME,
            _SHORT_NAMESPACE,
            Flag("scheduler", "S", "", "only jobs of this scheduler"),
            EVERYWHERE,
            Flag("selector", "", "", "only jobs with this text in their name, or with these labels (team=a)"),
            *_WIDE,
            *SERVER,
        ),
        "vjobs -N team-a",
        "name",
    ),
    "vqueues": Command(
        ("vqueues",),
        "list queues, or show one",
        f"{_HERE}.queue:queues_or_queue",
        (_QUEUE_NAME, *_WIDE, *SERVER),
        "vqueues",
        "name",
    ),
    "vcancel": Command(
        ("vcancel",),
        "delete a job and its pods",
        f"{_HERE}.job_writing:cancel_job",
        (_SHORT_NAME, _SHORT_NAMESPACE, *SERVER),
        "vcancel -n train -N team-a",
        "name",
    ),
    "vsuspend": Command(
        ("vsuspend",),
        "abort a job; it can be resumed",
        f"{_HERE}.job_writing:suspend_job",
        (_SHORT_NAME, _SHORT_NAMESPACE, *SERVER),
        "vsuspend -n train",
        "name",
    ),
    "vresume": Command(
        ("vresume",),
        "start an aborted job again",
        f"{_HERE}.job_writing:resume_job",
        (_SHORT_NAME, _SHORT_NAMESPACE, *SERVER),
        "vresume -n train",
        "name",
    ),
}
"""The programs that are one command each; name and namespace have swapped letters there, as in Volcano."""
