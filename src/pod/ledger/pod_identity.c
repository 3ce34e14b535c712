/* pod_identity.c - identities from texts: ids, attributes, paths, records. cdi_identity.c has those
 * of CDI edits. */
#include "pod/ledger/pod_identity.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/err.h"
#include "base/path.h"
#include "base/vec.h"
#include "cdi/cdi.h"
#include "claim/claim.h"
#include "device/device.h"
#include "resource/resource.h"

#define UUID_BYTES 36u
/* A set larger than this is not searched before an identity is added, as that would take quadratic
 * time. It may have one twice, which does no harm. */
#define DISTINCT_MAX 256u

const char *dv_identity_kind_name(enum dv_identity_kind kind)
{
    static const char *const names[DV_N_IDENTITY_KINDS] = {
        [DV_IDENTITY_PCI] = "PCI address",
        [DV_IDENTITY_UUID] = "UUID",
        [DV_IDENTITY_NODE] = "device node",
        [DV_IDENTITY_PATH] = "device path",
    };

    return names[kind];
}

/* ---- texts ---- */

static bool parse_hex(dv_str text, size_t n_min, size_t n_max, uint32_t max, uint32_t *value)
{
    uint32_t sum = 0;

    if (text.n < n_min || text.n > n_max) /* at most 8 digits: the number fits 32 bits */
        return false;
    for (size_t i = 0; i < text.n; i++) {
        int digit = dv_hex_value(text.p[i]);

        if (digit < 0)
            return false;
        sum = sum << 4 | (uint32_t)digit;
    }
    *value = sum;
    return sum <= max;
}

/* Parses [domain:]bus:device.function. A domain has 16 bits on most machines, and 32 where bridges
 * make their own. */
static bool parse_pci(dv_str text, struct dv_arena *arena, struct dv_identity *identity)
{
    uint32_t domain = 0;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    size_t colon = dv_str_find_char(text, ':');
    dv_str rest = dv_str_slice(text, colon + 1, text.n);
    size_t dot;

    if (dv_str_find_char(rest, ':') < rest.n) {
        if (!parse_hex(dv_str_slice(text, 0, colon), 4, 8, UINT32_MAX, &domain))
            return false;
        text = rest;
        colon = dv_str_find_char(text, ':');
    }
    dot = dv_str_find_char(text, '.');
    if (!parse_hex(dv_str_slice(text, 0, colon), 2, 2, 0xff, &bus) ||
        !parse_hex(dv_str_slice(text, colon + 1, dot), 2, 2, 0x1f, &device) ||
        !parse_hex(dv_str_slice(text, dot + 1, text.n), 1, 1, 7, &function))
        return false;
    if (domain == 0 && bus == 0 && device == 0 && function == 0)
        return false; /* all zeros stand for a value that nobody has set */
    *identity = (struct dv_identity){
        DV_IDENTITY_PCI, dv_str_printf(arena, "%04x:%02x:%02x.%x", domain, bus, device, function)};
    return true;
}

static bool parse_uuid(dv_str text, struct dv_arena *arena, struct dv_identity *identity)
{
    char plain[UUID_BYTES];
    bool has_digit = false;

    if (text.n != UUID_BYTES)
        return false;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        int digit = dv_hex_value(text.p[i]);

        if (is_dash ? text.p[i] != '-' : digit < 0)
            return false;
        plain[i] = is_dash ? '-' : "0123456789abcdef"[digit];
        has_digit = has_digit || digit > 0;
    }
    if (!has_digit)
        return false; /* all zeros stand for a value that nobody has set */
    *identity =
        (struct dv_identity){DV_IDENTITY_UUID, dv_str_copy((dv_str){plain, UUID_BYTES}, arena)};
    return true;
}

/* "8f6a…" of "GPU-8f6a…"; all of what has no such word before it. */
static dv_str after_word(dv_str text)
{
    size_t n = 0;

    while (n < text.n && (dv_is_letter(text.p[n]) || (n > 0 && dv_hex_value(text.p[n]) >= 0)))
        n++;
    return n > 0 && n < text.n && text.p[n] == '-' ? dv_str_slice(text, n + 1, text.n) : text;
}

dv_str dv_identity_device_of(dv_str id)
{
    return dv_str_slice(id, 0, dv_str_find(id, DV_STR("::")));
}

bool dv_identity_parse(dv_str text, struct dv_arena *arena, struct dv_identity *identity)
{
    dv_str device = dv_identity_device_of(text);
    dv_str bare = after_word(device);

    /* A UUID may itself begin with a letter, and so look like a word. */
    return parse_uuid(device, arena, identity) || parse_uuid(bare, arena, identity) ||
           parse_pci(bare, arena, identity);
}

/* ---- sets ---- */

void dv_identities_add(struct dv_identities *set, struct dv_identity identity,
                       struct dv_arena *arena)
{
    for (size_t i = 0; i < set->n && set->n < DISTINCT_MAX; i++) {
        if (set->v[i].kind == identity.kind && dv_str_eq(set->v[i].text, identity.text))
            return;
    }
    *dv_vec_add_in(set, arena) = identity;
}

static void add_text(struct dv_identities *set, dv_str text, struct dv_arena *arena)
{
    struct dv_identity identity;

    if (dv_identity_parse(text, arena, &identity))
        dv_identities_add(set, identity, arena);
}

/* Whether the kernel, or a vendor's driver, has this node once for any number of devices. The
 * ledger would learn that such a node is common, but only after it had refused the second
 * device. */
static bool is_control_node(dv_str path)
{
    static const dv_str paths[] = {
        DV_STR_INIT("/dev/fuse"),       DV_STR_INIT("/dev/infiniband/rdma_cm"),
        DV_STR_INIT("/dev/kfd"),        DV_STR_INIT("/dev/kvm"),
        DV_STR_INIT("/dev/net/tun"),    DV_STR_INIT("/dev/nvidia-modeset"),
        DV_STR_INIT("/dev/nvidia-uvm"), DV_STR_INIT("/dev/nvidia-uvm-tools"),
        DV_STR_INIT("/dev/nvidiactl"),  DV_STR_INIT("/dev/vfio/vfio"),
        DV_STR_INIT("/dev/vhost-net"),  DV_STR_INIT("/dev/vhost-vsock"),
    };

    for (size_t i = 0; i < DV_COUNT(paths); i++) {
        if (dv_str_eq(path, paths[i]))
            return true;
    }
    return false;
}

void dv_identities_add_path(struct dv_identities *set, dv_str path,
                            const struct dv_identity_host *host, struct dv_arena *arena)
{
    dv_str clean = dv_path_clean_absolute(path, arena);
    struct dv_identity_node node;

    if (is_control_node(clean))
        return;
    if (host && host->look(host, clean, &node))
        dv_identities_add(
            set,
            (struct dv_identity){DV_IDENTITY_NODE,
                                 dv_str_printf(arena, "%s %u:%u", node.is_block ? "block" : "char",
                                               node.major, node.minor)},
            arena);
    dv_identities_add(set, (struct dv_identity){DV_IDENTITY_PATH, clean}, arena);
}

/* Adds the device nodes and CDI names of an Allocate answer, those in its annotations too. Mounts
 * are left out: they are no devices. */
static void add_options(struct dv_identities *set, const struct dv_device_options *options,
                        const struct dv_cdi_index *index, const struct dv_identity_host *host,
                        struct dv_arena *arena)
{
    for (size_t i = 0; i < options->n_nodes; i++)
        dv_identities_add_path(set, options->nodes[i].host_path, host, arena);
    dv_identities_add_cdi_names(set, index, options->cdi_names, options->n_cdi_names, host, arena);
    for (size_t i = 0; i < options->n_annotations; i++) {
        struct dv_err err;
        dv_str *names;
        size_t n_names;

        /* A runtime ignores a request that it cannot read, so it gives no device. */
        if (dv_cdi_annotation_is_request(options->annotations[i].name) &&
            dv_cdi_annotation_parse(options->annotations[i].value, arena, &names, &n_names, &err))
            dv_identities_add_cdi_names(set, index, names, n_names, host, arena);
    }
}

/* ---- attributes ---- */

static bool attribute_has(const struct dv_api_device_attribute *attribute, dv_str text)
{
    if (dv_str_eq(attribute->string, text))
        return true;
    for (size_t i = 0; i < attribute->n_strings; i++) {
        if (dv_str_eq(attribute->strings[i], text))
            return true;
    }
    return false;
}

static bool another_has(const struct dv_api_device *devices, size_t n_devices, size_t at,
                        dv_str key, dv_str text)
{
    for (size_t i = 0; i < n_devices; i++) {
        for (size_t k = 0; i != at && k < devices[i].n_attributes; k++) {
            if (dv_str_eq(devices[i].attributes[k].key, key) &&
                attribute_has(&devices[i].attributes[k].value, text))
                return true;
        }
    }
    return false;
}

/* Adds the identities among the attributes of devices[at]: resource.kubernetes.io/pciBusID, and
 * each text that is a PCI address or a UUID. A text that another device of the slice has in the
 * same attribute is left out: it is that of a parent which they share. */
static void add_attributes(struct dv_identities *set, const struct dv_api_device *devices,
                           size_t n_devices, size_t at, struct dv_arena *arena)
{
    for (size_t i = 0; i < devices[at].n_attributes; i++) {
        const struct dv_api_device_attribute_entry *entry = &devices[at].attributes[i];
        bool is_own = dv_str_eq(entry->key, DV_STR("resource.kubernetes.io/pciBusID"));
        struct dv_identity identity;

        if (dv_identity_parse(entry->value.string, arena, &identity) &&
            (is_own || !another_has(devices, n_devices, at, entry->key, entry->value.string)))
            dv_identities_add(set, identity, arena);
        for (size_t k = 0; k < entry->value.n_strings; k++) {
            if (dv_identity_parse(entry->value.strings[k], arena, &identity) &&
                !another_has(devices, n_devices, at, entry->key, entry->value.strings[k]))
                dv_identities_add(set, identity, arena);
        }
    }
}

/* ---- all of a holding ---- */

static bool is_sorted(const dv_str *texts, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (dv_str_cmp(texts[i - 1], texts[i]) > 0)
            return false;
    return true;
}

/* The ids of the record, sorted and each once: a device on several NUMA nodes is listed for each of
 * them. */
static size_t ids_of(const struct dv_device_record *record, struct dv_arena *arena, dv_str **ids)
{
    size_t n_all = 0;
    size_t n = 0;
    dv_str *all;

    for (size_t i = 0; i < record->n_placed; i++)
        n_all += record->placed[i].n_ids;
    all = DV_NEW_ARRAY(arena, dv_str, n_all);
    n_all = 0;
    for (size_t i = 0; i < record->n_placed; i++) {
        for (size_t k = 0; k < record->placed[i].n_ids; k++)
            all[n_all++] = dv_str_copy(record->placed[i].ids[k], arena);
    }
    if (!is_sorted(all, n_all))
        qsort(all, n_all, sizeof(dv_str), dv_str_compare);
    for (size_t i = 0; i < n_all; i++) {
        if (n == 0 || !dv_str_eq(all[n - 1], all[i]))
            all[n++] = all[i];
    }
    *ids = all;
    return n;
}

bool dv_identities_of_record(const struct dv_device_record *record,
                             const struct dv_cdi_index *index, const struct dv_identity_host *host,
                             struct dv_arena *arena, struct dv_identities *set, dv_str **ids,
                             size_t *n_ids, struct dv_err *err)
{
    struct dv_identities found = {0};
    struct dv_device_options options;

    if (!dv_device_options_merge(&record->response, 1, arena, &options, err))
        return dv_wrap(err, "resource %.*s", DV_FMT(record->resource));
    *n_ids = ids_of(record, arena, ids);
    for (size_t i = 0; i < *n_ids; i++)
        add_text(&found, (*ids)[i], arena);
    add_options(&found, &options, index, host, arena);
    *set = found;
    return true;
}

void dv_identities_of_claim_device(const struct dv_claim_device *device,
                                   const struct dv_api_device *devices, size_t n_devices,
                                   const struct dv_cdi_index *index,
                                   const struct dv_identity_host *host, struct dv_arena *arena,
                                   struct dv_identities *set)
{
    *set = (struct dv_identities){0};
    for (size_t i = 0; i < n_devices; i++) {
        if (dv_str_eq(devices[i].name, device->name))
            add_attributes(set, devices, n_devices, i, arena);
    }
    dv_identities_add_cdi_names(set, index, device->cdi_ids, device->n_cdi_ids, host, arena);
}
