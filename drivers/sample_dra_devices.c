#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_dra.h"

#define ATTRIBUTES 6
#define TEXT_BYTES 64
#define NAME_BYTES 32
/* Of a whole device; partitions have a share of them. */
#define CORES 64u

/* ---- which there are ---- */

static void free_device(struct sample_dra_device *device)
{
    free(device->name);
    free(device->message);
    free(device->taint);
}

void sample_dra_devices_resize(struct sample_dra_devices *devices, size_t n)
{
    const struct sample_dra_options *options = devices->options;
    size_t n_each = 1 + options->n_partitions;
    struct sample_dra_device *v = sample_alloc(n * n_each * sizeof(v[0]));

    for (size_t i = 0; i < devices->n; i++) {
        if (i < n * n_each)
            v[i] = devices->v[i];
        else
            free_device(&devices->v[i]);
    }
    for (size_t i = devices->n; i < n * n_each; i++) {
        size_t index = i / n_each;
        int part = (int)(i % n_each) - 1;

        v[i] = (struct sample_dra_device){
            .name = part < 0 ? sample_printf("device-%zu", index)
                             : sample_printf("device-%zu-part-%d", index, part),
            .index = index,
            .part = part,
            .health = DAVIT_DRA_HEALTHY,
            .taint = options->taint ? sample_copy(options->taint) : NULL,
        };
    }
    free(devices->v);
    devices->v = v;
    devices->n = n * n_each;
}

void sample_dra_devices_init(struct sample_dra_devices *devices,
                             const struct sample_dra_options *options)
{
    *devices = (struct sample_dra_devices){.options = options};
    sample_dra_devices_resize(devices, options->n_devices);
}

void sample_dra_devices_fini(struct sample_dra_devices *devices)
{
    for (size_t i = 0; i < devices->n; i++)
        free_device(&devices->v[i]);
    free(devices->v);
}

struct sample_dra_device *sample_dra_devices_find(const struct sample_dra_devices *devices,
                                                  const char *name)
{
    for (size_t i = 0; i < devices->n; i++)
        if (strcmp(devices->v[i].name, name) == 0)
            return &devices->v[i];
    return NULL;
}

/* ---- as the API has them ---- */

/* All that one device's description points to. */
struct description {
    struct davit_dra_attribute attributes[ATTRIBUTES];
    struct davit_dra_amount capacity[2];
    struct davit_dra_counters consumes;
    struct davit_dra_taint taint;
    char uuid[TEXT_BYTES];
    char pci[TEXT_BYTES];
    char memory[NAME_BYTES];
    char cores[NAME_BYTES];
    char set[NAME_BYTES];
    char *taint_text; /* cut into pieces */
};

/* FNV-1a over texts, one behind the other. */
static uint64_t hash_of(const char *const *texts, size_t n)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < n; i++)
        for (const char *at = texts[i]; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    return hash;
}

/* The same for the same device, for ever, and another one for that of another driver. */
static void make_uuid(const char *driver, const char *pool, const char *name, char uuid[TEXT_BYTES])
{
    const char *const texts[] = {driver, "/", pool, "/", name};
    uint64_t hash = hash_of(texts, sizeof(texts) / sizeof(texts[0]));

    (void)snprintf(uuid, TEXT_BYTES,
                   "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64,
                   hash >> 32, hash >> 16 & 0xffff, hash & 0xfff, hash >> 12 & 0xfff,
                   (hash * 31) & 0xffffffffffff);
}

static int numa_of(const struct sample_dra_options *options, size_t index)
{
    return options->n_numas ? options->numas[index % options->n_numas] : -1;
}

static size_t describe_attributes(const struct sample_dra_options *options,
                                  const struct sample_dra_device *device, const char *pool,
                                  struct description *to)
{
    struct davit_dra_attribute *at = to->attributes;
    int numa = numa_of(options, device->index);

    make_uuid(options->driver, pool, device->name, to->uuid);
    /* A domain for each driver: two that are on one node have no device in common, or the node
     * would take them for one that is given away twice. */
    (void)snprintf(to->pci, sizeof(to->pci), "%04x:%02zx:%02zx.0",
                   (unsigned)(hash_of(&options->driver, 1) % 0xffffu), device->index / 32 % 256,
                   device->index % 32);
    *at++ = (struct davit_dra_attribute){
        .name = "index", .type = DAVIT_DRA_INT, .number = (int64_t)device->index};
    *at++ = (struct davit_dra_attribute){.name = "model", .text = options->model};
    *at++ = (struct davit_dra_attribute){.name = "uuid", .text = to->uuid};
    *at++ = (struct davit_dra_attribute){
        .name = "driverVersion", .type = DAVIT_DRA_VERSION, .text = DV_VERSION};
    *at++ =
        (struct davit_dra_attribute){.name = "resource.kubernetes.io/pciBusID", .text = to->pci};
    if (numa >= 0)
        *at++ = (struct davit_dra_attribute){.name = "numa", .type = DAVIT_DRA_INT, .number = numa};
    return (size_t)(at - to->attributes);
}

static void describe_amounts(const struct sample_dra_options *options,
                             const struct sample_dra_device *device, struct description *to)
{
    unsigned long n_shares =
        device->part < 0 || options->n_partitions == 0 ? 1 : options->n_partitions;

    (void)snprintf(to->memory, sizeof(to->memory), "%luMi", options->memory_mib / n_shares);
    (void)snprintf(to->cores, sizeof(to->cores), "%lu", CORES / n_shares);
    (void)snprintf(to->set, sizeof(to->set), "device-%zu", device->index);
    to->capacity[0] = (struct davit_dra_amount){"memory", to->memory};
    to->capacity[1] = (struct davit_dra_amount){"cores", to->cores};
    to->consumes = (struct davit_dra_counters){to->set, to->capacity, 2};
}

bool sample_dra_taint_check(const char *text)
{
    static const char *const effects[] = {"NoSchedule", "NoExecute", "None"};
    const char *colon = strrchr(text, ':');

    return colon && colon > text && text[0] != '=' && sample_choose(colon + 1, effects, 3) >= 0;
}

static void describe_taint(const struct sample_dra_device *device, struct description *to)
{
    char *text = sample_copy(device->taint);
    char *colon = strrchr(text, ':');
    char *equals = strchr(text, '=');

    *colon = '\0'; /* it was checked */
    if (equals)
        *equals = '\0';
    to->taint_text = text;
    to->taint = (struct davit_dra_taint){
        .key = text, .value = equals ? equals + 1 : NULL, .effect = colon + 1};
}

static struct davit_dra_device describe(const struct sample_dra_options *options,
                                        const struct sample_dra_device *device, const char *pool,
                                        struct description *to)
{
    struct davit_dra_device made = {
        .name = device->name,
        .attributes = to->attributes,
        .n_attributes = describe_attributes(options, device, pool, to),
        .capacity = to->capacity,
        .n_capacity = 2,
        .consumes = &to->consumes,
        .n_consumes = options->n_partitions > 0,
        .is_shareable = options->is_shareable,
    };

    describe_amounts(options, device, to);
    if (device->taint) {
        describe_taint(device, to);
        made.taints = &to->taint;
        made.n_taints = 1;
    }
    return made;
}

bool sample_dra_devices_publish(const struct sample_dra_devices *devices, struct davit_dra *dra,
                                const char *pool, struct davit_error *error)
{
    const struct sample_dra_options *options = devices->options;
    struct description *descriptions = sample_alloc(devices->n * sizeof(descriptions[0]));
    struct davit_dra_device *made = sample_alloc(devices->n * sizeof(made[0]));
    struct davit_dra_counters *sets = sample_alloc(devices->n * sizeof(sets[0]));
    struct davit_dra_pool wanted = {
        .name = pool, .devices = made, .n_devices = devices->n, .counter_sets = sets};
    bool is_good;

    for (size_t i = 0; i < devices->n; i++) {
        made[i] = describe(options, &devices->v[i], pool, &descriptions[i]);
        if (devices->v[i].part < 0 && options->n_partitions > 0)
            sets[wanted.n_counter_sets++] = descriptions[i].consumes; /* all that there is */
    }
    is_good = davit_dra_publish(dra, &wanted, 1, error);
    for (size_t i = 0; i < devices->n; i++)
        free(descriptions[i].taint_text);
    free(sets);
    free(made);
    free(descriptions);
    return is_good;
}

bool sample_dra_devices_tell(const struct sample_dra_devices *devices, struct davit_dra *dra,
                             const char *pool, struct davit_error *error)
{
    struct davit_dra_device_health *made = sample_alloc(devices->n * sizeof(made[0]));
    bool is_good;

    for (size_t i = 0; i < devices->n; i++)
        made[i] = (struct davit_dra_device_health){
            .pool = pool,
            .device = devices->v[i].name,
            .health = devices->v[i].health,
            .message = devices->v[i].message,
        };
    is_good = !(devices->options->flags & DAVIT_DRA_HEALTH) ||
              davit_dra_set_health(dra, made, devices->n, error);
    free(made);
    return is_good;
}
