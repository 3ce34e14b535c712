#include "builtin/machine_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/num.h"
#include "base/path.h"
#include "base/vec.h"
#include "base/visible.h"
#include "offer/offer.h"

#define DEPTH_MAX 6u
#define SYSFS_BYTES_MAX 4096u
/* What an attribute of a device may have in the API. */
#define FACT_BYTES_MAX 64u
/* Links to links: udev makes one step. */
#define HOPS_MAX 4u

struct link {
    dv_str path;   /* "/dev/serial/by-id/usb-…" */
    dv_str target; /* "/dev/ttyUSB0" */
};

struct scan {
    dv_str dev_dir;
    dv_str sys_dir;
    dev_t device; /* of dev_dir */
    struct dv_arena *arena;
    struct dv_scan_dirs *dirs;
    struct dv_map parts_by_path;
    bool is_cut;
    DV_VEC(struct dv_offer_part) parts;
    DV_VEC(struct dv_offer_node) nodes;
    DV_VEC(struct link) links;
};

/* ---- sysfs ---- */

/* The target of a link, empty: it is none. */
static dv_str read_link(dv_str path, struct dv_arena *arena)
{
    char target[PATH_MAX];
    ssize_t n = readlink(dv_str_to_c(path, arena), target, sizeof(target));

    return n > 0 && (size_t)n < sizeof(target) ? dv_str_copy((dv_str){target, (size_t)n}, arena)
                                               : DV_STR("");
}

/* Where a link of sysfs leads, from the root of sysfs: "devices/…". */
static dv_str resolve(struct scan *scan, dv_str dir, dv_str name)
{
    dv_str target = read_link(dv_str_printf(scan->arena, "%.*s/%.*s/%.*s", DV_FMT(scan->sys_dir),
                                            DV_FMT(dir), DV_FMT(name)),
                              scan->arena);
    dv_str path;

    if (target.n == 0)
        return DV_STR("");
    path = dv_path_clean_absolute(
        dv_str_printf(scan->arena, "%.*s/%.*s", DV_FMT(dir), DV_FMT(target)), scan->arena);
    return dv_str_slice(path, 1, path.n);
}

/* A line that the kernel, or the device itself, says about a device. Whoever builds a USB device
 * writes what he likes into it: what cannot be seen is replaced, what is too long is cut. */
static dv_str read_fact(struct scan *scan, dv_str path, const char *name)
{
    struct dv_err absent;
    dv_str text;
    size_t n = 0;

    if (!dv_file_read(
            dv_str_printf(scan->arena, "%.*s/%.*s/%s", DV_FMT(scan->sys_dir), DV_FMT(path), name),
            SYSFS_BYTES_MAX, scan->arena, &text, &absent))
        return DV_STR("");
    text = dv_str_visible(dv_str_trim(text), scan->arena);
    while (n < text.n) {
        size_t step = dv_str_utf8_char(dv_str_slice(text, n, text.n));

        if (step == 0 || n + step > FACT_BYTES_MAX)
            break;
        n += step;
    }
    return dv_str_trim(dv_str_slice(text, 0, n));
}

/* "10de" of "0x10de". */
static dv_str read_hex(struct scan *scan, dv_str path, const char *name)
{
    dv_str text = read_fact(scan, path, name);

    return dv_str_starts_with(text, DV_STR("0x")) ? dv_str_slice(text, 2, text.n) : text;
}

static void add_usb(struct scan *scan, dv_str path)
{
    *dv_vec_add_in(&scan->parts, scan->arena) = (struct dv_offer_part){
        .bus = DV_OFFER_BUS_USB,
        .path = path,
        .vendor = read_fact(scan, path, "idVendor"),
        .product = read_fact(scan, path, "idProduct"),
        .serial = read_fact(scan, path, "serial"),
        .vendor_name = read_fact(scan, path, "manufacturer"),
        .product_name = read_fact(scan, path, "product"),
        .numa_node = -1,
    };
}

static void add_pci(struct scan *scan, dv_str path)
{
    struct dv_offer_part part = {
        .bus = DV_OFFER_BUS_PCI,
        .path = path,
        .vendor = read_hex(scan, path, "vendor"),
        .product = read_hex(scan, path, "device"),
        .class = read_hex(scan, path, "class"),
        .numa_node = -1,
    };

    if (!dv_str_to_i64(read_fact(scan, path, "numa_node"), &part.numa_node))
        part.numa_node = -1;
    *dv_vec_add_in(&scan->parts, scan->arena) = part;
}

static void scan_bus(struct scan *scan, const char *dir,
                     void (*add)(struct scan *scan, dv_str path))
{
    DIR *stream = opendir(dv_str_to_c(
        dv_str_printf(scan->arena, "%.*s/%s", DV_FMT(scan->sys_dir), dir), scan->arena));
    const struct dirent *entry;

    while (stream && (entry = readdir(stream)) != NULL) {
        dv_str name = dv_str_from_c(entry->d_name);
        dv_str path;

        if (name.p[0] == '.' || scan->parts.n == DV_SCAN_NODES_MAX)
            continue;
        path = resolve(scan, dv_str_from_c(dir), name);
        /* "1-4:1.0" is an interface of a USB device; PCI addresses have a dot as well. */
        if (path.n > 0 && !(add == add_usb && dv_str_find_char(name, ':') < name.n))
            add(scan, path);
    }
    if (stream)
        (void)closedir(stream);
}

/* Finds the USB and the PCI device that the node's device is a part of: the nearest above it. */
static void place_node(struct scan *scan, struct dv_offer_node *node)
{
    dv_str path;

    node->sys_path = path = resolve(scan, node->is_block ? DV_STR("dev/block") : DV_STR("dev/char"),
                                    dv_str_printf(scan->arena, "%u:%u", node->major, node->minor));
    while (path.n > 0) {
        const struct dv_offer_part *part = dv_map_get(&scan->parts_by_path, path);

        if (part && part->bus == DV_OFFER_BUS_USB && !node->usb)
            node->usb = part;
        if (part && part->bus == DV_OFFER_BUS_PCI && !node->pci)
            node->pci = part;
        while (path.n > 0 && path.p[path.n - 1] != '/')
            path.n--;
        path.n -= path.n > 0;
    }
}

/* ---- /dev ---- */

static bool is_passed_over(dv_str name)
{
    /* Links to every node by its number, which tell nothing. */
    return dv_str_eq(name, DV_STR("char")) || dv_str_eq(name, DV_STR("block"));
}

static void add_link(struct scan *scan, dv_str dir, dv_str name)
{
    dv_str target = read_link(dv_str_printf(scan->arena, "%.*s%.*s/%.*s", DV_FMT(scan->dev_dir),
                                            DV_FMT(dir), DV_FMT(name)),
                              scan->arena);
    dv_str path;

    if (target.n == 0)
        return;
    path = dv_path_clean_absolute(target.p[0] == '/' ? target
                                                     : dv_str_printf(scan->arena, "%.*s%.*s/%.*s",
                                                                     DV_FMT(scan->dev_dir),
                                                                     DV_FMT(dir), DV_FMT(target)),
                                  scan->arena);
    if (!dv_str_starts_with(path, scan->dev_dir) || path.n <= scan->dev_dir.n ||
        path.p[scan->dev_dir.n] != '/')
        return; /* it leads out of the directory */
    *dv_vec_add_in(&scan->links, scan->arena) =
        (struct link){dv_str_printf(scan->arena, "/dev%.*s/%.*s", DV_FMT(dir), DV_FMT(name)),
                      dv_str_printf(scan->arena, "/dev%.*s",
                                    DV_FMT(dv_str_slice(path, scan->dev_dir.n, path.n)))};
}

static void scan_dir(struct scan *scan, int fd, dv_str dir, size_t depth);

static void see(struct scan *scan, int dir_fd, dv_str dir, const char *name, size_t depth)
{
    struct stat about;

    if (fstatat(dir_fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* it has gone meanwhile */
    if (scan->nodes.n + scan->links.n >= DV_SCAN_NODES_MAX) {
        scan->is_cut = true;
    } else if (S_ISLNK(about.st_mode)) {
        add_link(scan, dir, dv_str_from_c(name));
    } else if (S_ISDIR(about.st_mode)) {
        /* Other file systems have no nodes of devices: pts, shm, mqueue. */
        if (about.st_dev == scan->device && depth < DEPTH_MAX &&
            !is_passed_over(dv_str_from_c(name)))
            scan_dir(scan, openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                     dv_str_printf(scan->arena, "%.*s/%s", DV_FMT(dir), name), depth + 1);
    } else if (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode)) {
        struct dv_offer_node *node = dv_vec_add_in(&scan->nodes, scan->arena);

        *node = (struct dv_offer_node){
            .path = dv_str_printf(scan->arena, "/dev%.*s/%s", DV_FMT(dir), name),
            .is_block = S_ISBLK(about.st_mode),
            .major = major(about.st_rdev),
            .minor = minor(about.st_rdev),
        };
    }
}

/* Looks at a directory below dev_dir; `dir` is its path from there, "/serial/by-id". Takes `fd`. */
static void scan_dir(struct scan *scan, int fd, dv_str dir, size_t depth)
{
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (!stream) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    if (scan->dirs->n < DV_SCAN_DIRS_MAX)
        *dv_vec_add_in(scan->dirs, scan->arena) =
            dv_str_printf(scan->arena, "%.*s%.*s", DV_FMT(scan->dev_dir), DV_FMT(dir));
    while ((entry = readdir(stream)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            see(scan, dirfd(stream), dir, entry->d_name, depth);
    (void)closedir(stream);
}

/* ---- links to nodes ---- */

static int by_path(const void *a, const void *b)
{
    return dv_str_natural_cmp(((const struct dv_offer_node *)a)->path,
                              ((const struct dv_offer_node *)b)->path);
}

static void join_links(struct scan *scan)
{
    struct dv_map nodes, links;

    dv_map_init(&nodes);
    dv_map_init(&links);
    for (size_t i = 0; i < scan->nodes.n; i++)
        dv_map_set(&nodes, scan->nodes.v[i].path, &scan->nodes.v[i]);
    for (size_t i = 0; i < scan->links.n; i++)
        dv_map_set(&links, scan->links.v[i].path, &scan->links.v[i]);
    for (size_t i = 0; i < scan->links.n; i++) {
        const struct link *at = &scan->links.v[i];
        struct dv_offer_node *node = NULL;
        dv_str *all;

        for (size_t hops = 0; at && !node && hops < HOPS_MAX; hops++) {
            node = dv_map_get(&nodes, at->target);
            at = dv_map_get(&links, at->target);
        }
        if (!node)
            continue;
        all = DV_NEW_ARRAY(scan->arena, dv_str, node->n_links + 1);
        if (node->n_links > 0)
            memcpy(all, node->links, node->n_links * sizeof(all[0]));
        all[node->n_links++] = scan->links.v[i].path;
        qsort(all, node->n_links, sizeof(all[0]), dv_str_compare);
        node->links = all;
    }
    dv_map_fini(&nodes);
    dv_map_fini(&links);
}

void dv_machine_scan(dv_str dev_dir, dv_str sys_dir, struct dv_arena *arena,
                     struct dv_offer_snapshot *snapshot, struct dv_scan_dirs *dirs)
{
    struct scan scan = {.dev_dir = dev_dir, .sys_dir = sys_dir, .arena = arena, .dirs = dirs};
    int fd = open(dv_str_to_c(dev_dir, arena), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat about;

    dv_map_init(&scan.parts_by_path);
    scan_bus(&scan, "bus/usb/devices", add_usb);
    scan_bus(&scan, "bus/pci/devices", add_pci);
    for (size_t i = 0; i < scan.parts.n; i++)
        dv_map_set(&scan.parts_by_path, scan.parts.v[i].path, &scan.parts.v[i]);
    if (fd >= 0 && fstat(fd, &about) == 0) {
        scan.device = about.st_dev;
        scan_dir(&scan, fd, DV_STR(""), 0);
    }
    if (scan.nodes.n > 0)
        qsort(scan.nodes.v, scan.nodes.n, sizeof(struct dv_offer_node), by_path);
    for (size_t i = 0; i < scan.nodes.n; i++)
        place_node(&scan, &scan.nodes.v[i]);
    join_links(&scan);
    dv_map_fini(&scan.parts_by_path);
    snapshot->nodes = scan.nodes.v;
    snapshot->n_nodes = scan.nodes.n;
    snapshot->parts = scan.parts.v;
    snapshot->n_parts = scan.parts.n;
    snapshot->is_cut = scan.is_cut;
}
