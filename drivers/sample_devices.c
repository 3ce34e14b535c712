#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct sample_device *)a)->id, ((const struct sample_device *)b)->id);
}

void sample_devices_init(struct sample_devices *devices, const struct sample_options *options)
{
    *devices = (struct sample_devices){.options = options};
    for (size_t i = 0; i < options->n_virtual; i++) {
        char id[32];

        (void)snprintf(id, sizeof(id), "virtual-%zu", i);
        (void)sample_devices_add(devices, id, NULL);
    }
}

void sample_devices_fini(struct sample_devices *devices)
{
    for (size_t i = 0; i < devices->n; i++) {
        struct sample_device *device = devices->v[i];

        (void)tdelete(device, &devices->by_id, compare); /* is there */
        free(device->id_text);
        free(device->path);
        free(device);
    }
    free(devices->v);
    *devices = (struct sample_devices){.options = devices->options};
}

struct sample_device *sample_devices_find_any(const struct sample_devices *devices, const char *id)
{
    const struct sample_device key = {.id = id};
    struct sample_device *const *found = tfind(&key, &devices->by_id, compare);

    return found ? *found : NULL;
}

struct sample_device *sample_devices_find(const struct sample_devices *devices, const char *id)
{
    struct sample_device *device = sample_devices_find_any(devices, id);

    return device && !device->is_removed ? device : NULL;
}

static void grow(struct sample_devices *devices)
{
    size_t size = devices->size ? devices->size * 2 : 16;
    struct sample_device **v = sample_alloc(size * sizeof(v[0]));

    if (devices->n > 0)
        memcpy(v, devices->v, devices->n * sizeof(v[0]));
    free(devices->v);
    devices->v = v;
    devices->size = size;
}

struct sample_device *sample_devices_add(struct sample_devices *devices, const char *id,
                                         const char *path)
{
    const struct sample_options *options = devices->options;
    struct sample_device *device = sample_alloc(sizeof(*device));

    if (devices->n == devices->size)
        grow(devices);
    device->id = device->id_text = sample_copy(id);
    device->path = path ? sample_copy(path) : NULL;
    if (options->n_numas > 0)
        device->numa = options->numas[devices->n % options->n_numas];
    devices->v[devices->n++] = device;
    if (!tsearch(device, &devices->by_id, compare))
        abort(); /* no memory */
    return device;
}

bool sample_device_is_healthy(const struct sample_device *device)
{
    return !device->is_gone && !device->is_broken;
}

void sample_devices_toggle_next(struct sample_devices *devices)
{
    for (size_t i = 0; i < devices->n; i++) {
        struct sample_device *device = devices->v[devices->next++ % devices->n];

        if (device->is_removed)
            continue;
        device->is_broken = !device->is_broken;
        return;
    }
}

void sample_devices_heal(struct sample_devices *devices)
{
    for (size_t i = 0; i < devices->n; i++)
        devices->v[i]->is_broken = false;
    devices->next = 0;
}

bool sample_devices_push(const struct sample_devices *devices, struct davit_device_plugin *plugin,
                         struct davit_error *error)
{
    struct davit_device *list = sample_alloc(devices->n * sizeof(list[0]));
    size_t n = 0;
    bool is_good;

    for (size_t i = 0; i < devices->n; i++) {
        const struct sample_device *device = devices->v[i];

        if (!device->is_removed)
            list[n++] = (struct davit_device){
                .id = device->id,
                .is_healthy = sample_device_is_healthy(device),
                .numa_nodes = device->numa.nodes,
                .n_numa_nodes = device->numa.n,
            };
    }
    is_good = davit_device_plugin_set_devices(plugin, list, n, error);
    free(list);
    return is_good;
}
