#include "pod/runner/host_facts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "resource/values.h"
#include "workload/workload.h"

#define RESOLVER_FILE "/etc/resolv.conf"
#define HOSTS_FILE "/etc/hosts"
#define HUGEPAGES_DIR "/sys/kernel/mm/hugepages"
/* These are there on a machine whose cgroups are of version 2 alone, and with its swap counted. */
#define CGROUP2_SIGN "/sys/fs/cgroup/cgroup.controllers"
#define SWAP_SIGN "/sys/fs/cgroup/system.slice/memory.swap.max"
#define SELINUX_SIGN "/sys/fs/selinux/enforce"
/* A hosts file may list a network; one of this size is no hosts file. */
#define TEXT_BYTES_MAX (1u << 20)

static void add(struct dv_strs *list, dv_str text, struct dv_arena *arena)
{
    dv_str *longer = DV_NEW_ARRAY(arena, dv_str, list->n + 1);

    for (size_t i = 0; i < list->n; i++)
        longer[i] = list->v[i];
    longer[list->n] = text;
    *list = (struct dv_strs){longer, list->n + 1};
}

/* ---- resolv.conf ---- */

/* Takes the next word off the line; false at its end. */
static bool next_word(dv_str *line, dv_str *word)
{
    size_t n = 0;

    *line = dv_str_trim(*line);
    while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t')
        n++;
    *word = dv_str_slice(*line, 0, n);
    *line = dv_str_slice(*line, n, line->n);
    return n > 0;
}

void dv_host_resolver_parse(dv_str text, struct dv_arena *arena,
                            struct dv_workload_resolver *resolver)
{
    dv_str line;

    *resolver = (struct dv_workload_resolver){0};
    while (text.p && dv_str_split(&text, '\n', &line)) {
        struct dv_strs *list = NULL;
        dv_str word;

        if (line.n > 0 && (line.p[0] == '#' || line.p[0] == ';'))
            continue;
        if (!next_word(&line, &word))
            continue;
        if (dv_str_eq(word, DV_STR("nameserver"))) {
            if (next_word(&line, &word))
                add(&resolver->servers, word, arena);
            continue;
        }
        if (dv_str_eq(word, DV_STR("search")))
            list = &resolver->searches;
        else if (dv_str_eq(word, DV_STR("options")))
            list = &resolver->options;
        if (!list)
            continue;
        *list = (struct dv_strs){0};
        while (next_word(&line, &word))
            add(list, word, arena);
    }
}

/* ---- addresses ---- */

static bool is_useful(const struct ifaddrs *at, int family)
{
    const struct sockaddr_in6 *v6;

    if (!at->ifa_addr || at->ifa_addr->sa_family != family || (at->ifa_flags & IFF_LOOPBACK) ||
        !(at->ifa_flags & IFF_UP))
        return false;
    v6 = (const struct sockaddr_in6 *)(const void *)at->ifa_addr;
    return family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

static dv_str print_address(const struct sockaddr *address, struct dv_arena *arena)
{
    char text[INET6_ADDRSTRLEN] = "";
    const void *bytes =
        address->sa_family == AF_INET
            ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
            : (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    (void)inet_ntop(address->sa_family, bytes, text, sizeof(text));
    return dv_str_copy(dv_str_from_c(text), arena);
}

/* The address that packets to the world leave from, when there is a way to it: a datagram socket
 * that is connected sends nothing, and tells. */
static dv_str main_address(struct dv_arena *arena)
{
    /* of a block for documentation (RFC 5737): it is nobody's */
    struct sockaddr_in world = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in own = {0};
    socklen_t size = sizeof(own);
    DV_CLEANUP(dv_close_fd) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)inet_pton(AF_INET, "198.51.100.1", &world.sin_addr);
    if (fd < 0 || connect(fd, (struct sockaddr *)&world, sizeof(world)) < 0 ||
        getsockname(fd, (struct sockaddr *)&own, &size) < 0)
        return DV_STR("");
    return print_address((struct sockaddr *)&own, arena);
}

/* One address of each family, as a node has: that of the way out first. */
static struct dv_strs read_addresses(struct dv_arena *arena)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct dv_strs list = {0};
    struct ifaddrs *all = NULL;
    dv_str first = main_address(arena);

    if (first.n > 0)
        add(&list, first, arena);
    if (getifaddrs(&all) < 0)
        all = NULL;
    for (size_t i = first.n > 0 ? 1 : 0; i < DV_COUNT(families); i++)
        for (const struct ifaddrs *at = all; at; at = at->ifa_next)
            if (is_useful(at, families[i])) {
                add(&list, print_address(at->ifa_addr, arena), arena);
                break;
            }
    if (all)
        freeifaddrs(all);
    if (list.n == 0)
        add(&list, DV_STR("127.0.0.1"), arena);
    return list;
}

/* ---- huge pages ---- */

/* "hugepages-2048kB" as cgroups write that size: "2MB". */
static dv_str page_size(dv_str name, struct dv_arena *arena)
{
    static const char *const units[] = {"KB", "MB", "GB"};
    const dv_str prefix = DV_STR("hugepages-");
    const dv_str suffix = DV_STR("kB");
    uint64_t size;
    size_t unit = 0;

    if (!dv_str_starts_with(name, prefix) || !dv_str_ends_with(name, suffix) ||
        !dv_str_to_u64(dv_str_slice(name, prefix.n, name.n - suffix.n), &size))
        return DV_STR("");
    while (unit + 1 < DV_COUNT(units) && size >= 1024 && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    return dv_str_printf(arena, "%llu%s", (unsigned long long)size, units[unit]);
}

static struct dv_strs read_page_sizes(struct dv_arena *arena)
{
    struct dv_strs list = {0};
    DIR *dir = opendir(HUGEPAGES_DIR);
    const struct dirent *entry;

    if (!dir)
        return list;
    while ((entry = readdir(dir)) != NULL) {
        dv_str size = page_size(dv_str_from_c(entry->d_name), arena);

        if (size.n > 0)
            add(&list, size, arena);
    }
    (void)closedir(dir);
    return list;
}

/* ---- all of it ---- */

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

void dv_host_facts_read(struct dv_arena *arena, struct dv_workload_node *node)
{
    struct dv_err absent;
    dv_str text;

    if (dv_file_read(DV_STR(RESOLVER_FILE), TEXT_BYTES_MAX, arena, &text, &absent)) {
        dv_host_resolver_parse(text, arena, &node->resolver);
        node->has_resolver = true;
    }
    if (dv_file_read(DV_STR(HOSTS_FILE), TEXT_BYTES_MAX, arena, &text, &absent))
        node->hosts_file = text;
    node->host_ips = read_addresses(arena);
    node->hugepage_sizes = read_page_sizes(arena);
    node->cgroup_version = is_there(CGROUP2_SIGN) ? 2 : 1;
    node->has_swap_controller = node->cgroup_version == 2 && is_there(SWAP_SIGN);
    node->has_selinux = is_there(SELINUX_SIGN);
}
