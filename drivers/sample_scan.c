#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sample.h"

/* Kubernetes documents 63 characters for an id; a name of the host may be longer. */
#define ID_BYTES 256u

/* The path below /dev with dashes: ttyS0, serial-by-id-usb-1. False: too long. */
static bool make_id(const char *path, char id[ID_BYTES])
{
    const char *from = strncmp(path, "/dev/", 5) == 0 ? path + 5 : path + 1;
    size_t n = strlen(from);

    if (n == 0 || n >= ID_BYTES)
        return false;
    for (size_t i = 0; i <= n; i++) {
        bool is_plain = from[i] > ' ' && from[i] != '/' && from[i] != '=' && from[i] != '@';

        id[i] = is_plain || from[i] == '\0' ? from[i] : '-';
    }
    return true;
}

static bool is_node(const char *path, struct stat *info)
{
    return stat(path, info) == 0 && (S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode));
}

/* The number in the file; -1: none, or the kernel does not know either. */
static int read_number(const char *path)
{
    FILE *file = fopen(path, "re");
    char text[16] = "";
    char *end = text;
    long number = -1;

    if (!file)
        return -1;
    if (fgets(text, sizeof(text), file))
        number = strtol(text, &end, 10);
    (void)fclose(file); /* was only read */
    return end > text && number >= 0 && number < SAMPLE_NODES_MAX ? (int)number : -1;
}

/* From the device upwards: the first that has a NUMA node is what it hangs on. */
static struct sample_numa numa_of(const struct stat *info)
{
    struct sample_numa numa = {.n = 0};
    char path[PATH_MAX + 16];
    char at[PATH_MAX];

    (void)snprintf(path, sizeof(path), "/sys/dev/%s/%u:%u",
                   S_ISCHR(info->st_mode) ? "char" : "block", major(info->st_rdev),
                   minor(info->st_rdev));
    if (!realpath(path, at))
        return numa;
    while (strncmp(at, "/sys/devices/", 13) == 0) {
        (void)snprintf(path, sizeof(path), "%s/numa_node", at);
        numa.nodes[0] = read_number(path);
        if (numa.nodes[0] >= 0) {
            numa.n = 1;
            break;
        }
        *strrchr(at, '/') = '\0';
    }
    return numa;
}

/* A node that matches a pattern: known, or a new device. */
static void see(struct sample_devices *devices, const char *path)
{
    struct sample_device *device;
    char id[ID_BYTES];
    struct stat info;

    if (!is_node(path, &info) || !make_id(path, id))
        return;
    device = sample_devices_find_any(devices, id);
    if (device && device->path && strcmp(device->path, path) == 0) {
        device->is_gone = false;
        return;
    }
    if (device) /* two paths with one id: the first one stays */
        return;
    device = sample_devices_add(devices, id, path);
    if (devices->options->n_numas == 0)
        device->numa = numa_of(&info);
}

void sample_scan(struct sample_devices *devices)
{
    const struct sample_options *options = devices->options;

    for (size_t i = 0; i < devices->n; i++)
        devices->v[i]->is_gone = devices->v[i]->path != NULL;
    for (size_t i = 0; i < options->n_patterns; i++) {
        glob_t found;

        if (glob(options->patterns[i], 0, NULL, &found) != 0)
            continue; /* nothing there now */
        for (size_t k = 0; k < found.gl_pathc; k++)
            see(devices, found.gl_pathv[k]);
        globfree(&found);
    }
}

int sample_scan_open(void)
{
    return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

/* The directory up to the first part of the path that is a pattern. */
static void watch_pattern(int fd, const char *pattern)
{
    size_t n = strcspn(pattern, "*?[\\");
    char dir[PATH_MAX];

    while (n > 1 && pattern[n - 1] != '/')
        n--;
    if (n >= sizeof(dir))
        return;
    memcpy(dir, pattern, n);
    dir[n] = '\0';
    (void)inotify_add_watch(fd, dir, /* not there yet: the next scan tries again */
                            IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR);
}

void sample_scan_watch(int fd, const struct sample_options *options)
{
    for (size_t i = 0; fd >= 0 && i < options->n_patterns; i++)
        watch_pattern(fd, options->patterns[i]);
}
