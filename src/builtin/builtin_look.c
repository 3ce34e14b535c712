/* builtin_look.c - one look at the machine, from beginning to end. */
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/vec.h"
#include "builtin/builtin_state.h"
#include "cdidir/cdidir.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

/* ---- CDI specs, on the loop's thread ---- */

static bool is_offered(const struct dv_offers *offers, dv_str kind)
{
    for (size_t i = 0; i < offers->n; i++)
        for (size_t k = 0; k < offers->v[i].n_matches; k++)
            if (offers->v[i].matches[k].kind == DV_OFFER_CDI &&
                dv_str_eq(offers->v[i].matches[k].cdi_kind, kind))
                return true;
    return false;
}

static void copy_entry(const struct dv_cdi_entry *entry, struct dv_arena *arena,
                       struct dv_offer_cdi *cdi)
{
    const struct dv_cdi_container_edits *edits = &entry->device->edits;
    dv_str *nodes = DV_NEW_ARRAY(arena, dv_str, edits->n_nodes);
    size_t n = 0;

    for (size_t i = 0; i < edits->n_nodes; i++) {
        const struct dv_cdi_node *node = &edits->nodes[i];

        nodes[n++] = dv_str_copy(node->host_path.n > 0 ? node->host_path : node->path, arena);
    }
    if (n > 0)
        qsort(nodes, n, sizeof(nodes[0]), dv_str_compare);
    *cdi = (struct dv_offer_cdi){
        .name = dv_str_copy(entry->device->full_name, arena),
        .kind = dv_str_copy(entry->spec->kind, arena),
        .device = dv_str_copy(entry->device->name, arena),
        .nodes = nodes,
        .n_nodes = n,
    };
}

static void take_specs(struct dv_builtin_driver *builtin, struct dv_builtin_look *look)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_VEC(struct dv_offer_cdi) all = {0};
    const struct dv_cdi_entry **entries;
    size_t n;

    if (!builtin->options.cdi)
        return;
    entries = dv_cdi_index_list(dv_cdi_dirs_index(builtin->options.cdi), scratch, &n);
    for (size_t i = 0; i < n; i++)
        if (!entries[i]->rival && is_offered(&look->config->offers, entries[i]->spec->kind))
            copy_entry(entries[i], look->arena, dv_vec_add_in(&all, look->arena));
    look->snapshot.cdi = all.v;
    look->snapshot.n_cdi = all.n;
}

struct dv_builtin_look *dv_builtin_look_new(struct dv_builtin_driver *builtin,
                                            struct dv_offer_list *before)
{
    struct dv_builtin_look *look = DV_ALLOC(struct dv_builtin_look);
    const struct dv_map_entry *entry;

    look->arena = dv_arena_new();
    look->config = dv_builtin_config_ref(builtin->config);
    take_specs(builtin, look);
    *before = (struct dv_offer_list){0};
    if (builtin->now) {
        /* The last list stays until the next one takes its place, which is after this look. */
        const struct dv_offer_list *last = &builtin->now->list;
        DV_VEC(struct dv_offer_device) all = {0};

        for (size_t i = 0; i < last->n_devices; i++)
            *dv_vec_add_in(&all, look->arena) = last->devices[i];
        before->devices = all.v;
        before->n_devices = all.n;
    }
    /* What is held goes before what was seen last. */
    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;)
        dv_offer_record_remember(&((struct dv_builtin_claim *)entry->value)->record, look->arena,
                                 before);
    return look;
}

void dv_builtin_look_free(struct dv_loop *loop, struct dv_builtin_look *look)
{
    if (!look)
        return;
    dv_builtin_config_unref(look->config);
    dv_loop_free_arena(loop, look->arena);
    free(look);
}

/* ---- the look, on any thread ---- */

static void print_part(struct dv_buf *buf, const struct dv_offer_part *part)
{
    if (part)
        dv_buf_printf(buf, " %.*s %.*s %.*s %.*s %.*s %.*s %.*s %lld", DV_FMT(part->path),
                      DV_FMT(part->vendor), DV_FMT(part->product), DV_FMT(part->class),
                      DV_FMT(part->serial), DV_FMT(part->vendor_name), DV_FMT(part->product_name),
                      (long long)part->numa_node);
}

static void print_device(struct dv_buf *buf, const struct dv_offer_device *device)
{
    dv_offer_print(device->offer, buf);
    dv_buf_printf(buf, " %.*s", DV_FMT(device->name));
    if (device->cdi)
        dv_buf_printf(buf, " %.*s", DV_FMT(device->cdi->name));
    print_part(buf, device->usb);
    print_part(buf, device->pci);
    for (size_t i = 0; i < device->n_nodes; i++) {
        const struct dv_offer_node *node = device->nodes[i];

        dv_buf_printf(buf, " %d %u:%u %.*s", node->is_block, node->major, node->minor,
                      DV_FMT(node->path));
        for (size_t k = 0; k < node->n_links; k++)
            dv_buf_printf(buf, " %.*s", DV_FMT(node->links[k]));
    }
    dv_buf_add_char(buf, '\n');
}

static dv_str print_list(const struct dv_offer_list *list, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < list->n_devices; i++)
        print_device(&buf, &list->devices[i]);
    for (size_t i = 0; i < list->n_notes; i++)
        dv_buf_printf(&buf, "%.*s: %.*s\n", DV_FMT(list->notes[i].offer->name),
                      DV_FMT(list->notes[i].text));
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with a valid address */
    return (uint64_t)now.tv_sec * DV_NS_PER_S + (uint64_t)now.tv_nsec;
}

void dv_builtin_look_take(struct dv_builtin_look *look, dv_str dev_dir, dv_str sys_dir,
                          const struct dv_offer_list *before)
{
    uint64_t start_ns = now_ns();

    dv_machine_scan(dev_dir, sys_dir, look->arena, &look->snapshot, &look->dirs);
    dv_offer_apply(&look->config->offers, &look->snapshot, before, look->arena, &look->list);
    look->text = print_list(&look->list, look->arena);
    look->took_ns = now_ns() - start_ns;
}
