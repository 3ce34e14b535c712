/* daemon_node.c - describes this machine as a Node of the API, and opens its agent. */
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "pod/agent.h"
#include "pod/runner.h"
#include "resource/resource.h"
#include "serve/health.h"

#define OS_RELEASE_BYTES_MAX 65536u
#define SYSFS_BYTES_MAX 65536u
#define MACHINE_ID_BYTES_MAX 256u

/* Returns Go's name for the architecture, from the kernel's. */
static dv_str architecture(const char *machine, struct dv_arena *arena)
{
    static const struct {
        dv_str kernel;
        dv_str go;
    } names[] = {
        {DV_STR_INIT("x86_64"),  DV_STR_INIT("amd64")  },
        {DV_STR_INIT("aarch64"), DV_STR_INIT("arm64")  },
        {DV_STR_INIT("armv7l"),  DV_STR_INIT("arm")    },
        {DV_STR_INIT("i686"),    DV_STR_INIT("386")    },
        {DV_STR_INIT("ppc64le"), DV_STR_INIT("ppc64le")},
    };

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(names[i].kernel, dv_str_from_c(machine)))
            return names[i].go;
    return dv_str_copy(dv_str_from_c(machine), arena);
}

/* Returns the value of PRETTY_NAME="..." in os-release. */
static dv_str os_image(struct dv_arena *arena)
{
    const dv_str key = DV_STR("PRETTY_NAME=");
    struct dv_err absent;
    dv_str text;
    dv_str line;

    if (!dv_file_read(DV_STR("/etc/os-release"), OS_RELEASE_BYTES_MAX, arena, &text, &absent))
        return DV_STR("");
    while (dv_str_split(&text, '\n', &line)) {
        if (!dv_str_starts_with(line, key))
            continue;
        line = dv_str_trim(dv_str_slice(line, key.n, line.n));
        if (line.n >= 2 && line.p[0] == '"')
            line = dv_str_slice(line, 1, line.n - 1);
        return line;
    }
    return DV_STR("");
}

static dv_str machine_id(struct dv_arena *arena)
{
    struct dv_err absent;
    dv_str text;

    return dv_file_read(DV_STR("/etc/machine-id"), MACHINE_ID_BYTES_MAX, arena, &text, &absent)
               ? dv_str_trim(text)
               : DV_STR("");
}

/* The size of the disk for what pods write, as the reference takes it: that of its own directory.
 */
static uint64_t storage_bytes(struct dv_daemon *daemon)
{
    struct statvfs about;

    if (statvfs(dv_str_to_c(daemon->options->kubelet_dir, daemon->arena), &about) < 0)
        return 0;
    return dv_u64_min((uint64_t)about.f_blocks * about.f_frsize, INT64_MAX);
}

/* A line of a file of the kernel; empty: it cannot be read. */
static dv_str read_text(struct dv_daemon *daemon, dv_str path)
{
    struct dv_err absent;
    dv_str text;

    return dv_file_read(path, SYSFS_BYTES_MAX, daemon->arena, &text, &absent) ? dv_str_trim(text)
                                                                              : DV_STR("");
}

struct huge_pages {
    struct dv_agent_huge_pages *v;
    size_t n;
};

/* Reads how many huge pages of each size the kernel has set aside. */
static void read_huge_pages(struct dv_daemon *daemon, struct huge_pages *all)
{
    static const uint64_t sizes_kib[] = {64, 1024, 2048, 32768, 1048576};

    all->v = DV_NEW_ARRAY(daemon->arena, struct dv_agent_huge_pages, DV_COUNT(sizes_kib));
    for (size_t i = 0; i < DV_COUNT(sizes_kib); i++) {
        dv_str name =
            dv_str_printf(daemon->arena, "kernel/mm/hugepages/hugepages-%llukB/nr_hugepages",
                          (unsigned long long)sizes_kib[i]);
        dv_str text = read_text(daemon, dv_daemon_path(daemon, daemon->options->sys_dir,
                                                       dv_str_to_c(name, daemon->arena)));
        uint64_t n;

        if (dv_str_to_u64(text, &n))
            all->v[all->n++] = (struct dv_agent_huge_pages){sizes_kib[i] * 1024, n};
    }
}

static void on_faulty(void *ctx, const dv_str *texts, size_t n_texts)
{
    struct dv_daemon *daemon = ctx;

    dv_health_set_faults(daemon->health, texts, n_texts);
}

/* Where the cgroups of pods are. Who has the kubelet's own directory is the machine's kubelet, and
 * has its place, /kubepods; any other agent stays out of it, because a kubelet kills what it does
 * not know there. */
static void set_cgroups(struct dv_daemon *daemon, struct dv_runner_options *runner)
{
    const struct dv_options *options = daemon->options;
    bool is_auto = dv_str_eq(options->cgroup_root, DV_STR("auto"));

    if (dv_str_eq(options->cgroup_root, DV_STR("none")))
        return;
    runner->cgroup_dir = dv_daemon_path(daemon, options->sys_dir, "fs/cgroup");
    if (!is_auto)
        runner->cgroup_root =
            dv_str_eq(options->cgroup_root, DV_STR("/")) ? DV_STR("") : options->cgroup_root;
    else if (!dv_str_eq(options->kubelet_dir, DV_STR(DV_KUBELET_DIR)))
        runner->cgroup_root = DV_STR("/davit");
}

static bool open_runner(struct dv_daemon *daemon, const struct dv_agent_machine *machine,
                        struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    struct dv_runner_options runner = {
        .cluster = daemon->cluster,
        .pods = daemon->pods,
        .devices = daemon->devices,
        .claims = daemon->claims,
        .recorder = daemon->recorder,
        .cdi = daemon->cdi,
        .cri = options->cri,
        .memory_file = dv_daemon_path(daemon, options->state_dir, "runtime"),
        .node_name = options->node_name,
        .root_dir = options->kubelet_dir,
        .log_dir = options->pod_logs_dir,
        .images = options->image_gc,
        .n_cpus = machine->n_cpus,
        .memory_bytes = machine->memory_bytes,
        .storage_bytes = machine->storage_bytes,
    };

    set_cgroups(daemon, &runner);
    daemon->runner = dv_runner_open(daemon->loop, &runner, err);
    return daemon->runner || dv_wrap(err, "--cri");
}

bool dv_daemon_open_agent(struct dv_daemon *daemon, struct dv_err *err)
{
    struct utsname names = {0};
    struct huge_pages huge_pages = {0};
    struct dv_agent_options options = {
        .cluster = daemon->cluster,
        .pods = daemon->pods,
        .devices = daemon->devices,
        .claims = daemon->claims,
        .recorder = daemon->recorder,
        .node_name = daemon->options->node_name,
        /* As a semantic version, which tools compare: the kubelet's whose part davit plays. */
        .version = DV_STR(DV_KUBERNETES_VERSION "+davit." DV_VERSION),
        .renews_lease = daemon->remote != NULL,
        .watches_claims = daemon->remote == NULL,
        .is_strict = daemon->options->is_strict,
        .pod_manifest_path = daemon->options->pod_manifest_path,
        .faulty = on_faulty,
        .ctx = daemon,
    };

    (void)uname(&names); /* cannot fail with a valid address */
    read_huge_pages(daemon, &huge_pages);
    options.machine = (struct dv_agent_machine){
        .n_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
        .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .storage_bytes = storage_bytes(daemon),
        .storage_dir = dv_str_to_c(daemon->options->kubelet_dir, daemon->arena),
        .huge_pages = huge_pages.v,
        .n_huge_pages = huge_pages.n,
        .machine_id = machine_id(daemon->arena),
        .system_uuid = read_text(
            daemon, dv_daemon_path(daemon, daemon->options->sys_dir, "class/dmi/id/product_uuid")),
        .boot_id = daemon->boot_id,
        .kernel = dv_str_copy(dv_str_from_c(names.release), daemon->arena),
        .os_image = os_image(daemon->arena),
        .architecture = architecture(names.machine, daemon->arena),
    };
    if (!open_runner(daemon, &options.machine, err))
        return false;
    options.runner = daemon->runner;
    daemon->agent = dv_agent_open(daemon->loop, &options, err);
    return daemon->agent != NULL;
}
