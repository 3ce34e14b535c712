/* fuzz_remote_watch.c - bytes of a watch: what is told does not depend on how they arrive, never
 * more than a line is kept, and the state is what the events before the first bad one say.
 *
 * The first byte is the size of the parts. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/remote/remote_event.h"
#include "resource/resource.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINE_BYTES_MAX 4096u

/* What has been told, as a view would show it. */
struct shown {
    struct dv_names objects;
    uint64_t version;
    size_t n_events;
    bool has_failed;
};

static struct dv_name name_of(const void *item)
{
    const struct dv_object *object = item;

    return (struct dv_name){object->meta->namespace, object->meta->name};
}

static void take(struct shown *shown, dv_str line)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_CONFIG_MAP);
    struct dv_remote_event event;
    struct dv_err err;
    const struct dv_api_object_meta *meta;

    if (shown->has_failed || dv_str_trim(line).n == 0)
        return;
    if (!dv_remote_event_read(kind, &kind->versions[0], line, arena, &event, &err)) {
        assert(err.msg[0] && err.code != DV_OK);
        shown->has_failed = true;
        return;
    }
    shown->n_events++;
    assert((event.object != NULL) == (event.type < DV_REMOTE_BOOKMARK));
    assert((event.version == 0) == (event.type == DV_REMOTE_ERROR));
    if (event.version)
        shown->version = event.version;
    if (!event.object)
        return;
    meta = event.object->meta;
    assert(meta->name.n && meta->namespace.n && event.object->version == event.version);
    if (event.type == DV_REMOTE_DELETED)
        dv_object_unref(dv_names_remove(&shown->objects, meta->namespace, meta->name));
    else
        dv_object_unref(dv_names_put(&shown->objects, dv_object_ref(event.object)));
    dv_object_unref(event.object);
}

static void feed(struct shown *shown, dv_str bytes, size_t part_bytes)
{
    struct dv_remote_lines lines;
    struct dv_err err;
    dv_str line;

    dv_remote_lines_init(&lines, LINE_BYTES_MAX);
    while (bytes.n > 0 && !shown->has_failed) {
        dv_str part = dv_str_slice(bytes, 0, part_bytes);

        bytes = dv_str_slice(bytes, part_bytes, bytes.n);
        while (dv_remote_lines_next(&lines, &part, &line))
            take(shown, line);
        assert(lines.kept.n <= LINE_BYTES_MAX);
        if (!dv_remote_lines_check(&lines, &err))
            shown->has_failed = true;
    }
    dv_remote_lines_fini(&lines);
}

/* The same without parts. */
static void feed_plainly(struct shown *shown, dv_str bytes)
{
    while (!shown->has_failed) {
        size_t end = dv_str_find_char(bytes, '\n');

        if (end > LINE_BYTES_MAX)
            shown->has_failed = true;
        else if (end < bytes.n)
            take(shown, dv_str_slice(bytes, 0, end));
        if (end == bytes.n)
            break;
        bytes = dv_str_slice(bytes, end + 1, bytes.n);
    }
}

static void compare(const struct shown *a, const struct shown *b)
{
    const struct dv_object *object;
    size_t at = 0;

    assert(a->has_failed == b->has_failed && a->n_events == b->n_events);
    assert(a->version == b->version && a->objects.n == b->objects.n);
    while ((object = dv_names_next(&a->objects, &at)) != NULL) {
        const struct dv_object *other =
            dv_names_get(&b->objects, object->meta->namespace, object->meta->name);

        assert(other && other->version == object->version);
        assert(dv_message_eq(object->kind->versions[0].message, object->value, other->value));
    }
}

static void forget(struct shown *shown)
{
    struct dv_object *object;
    size_t at = 0;

    while ((object = dv_names_next(&shown->objects, &at)) != NULL)
        dv_object_unref(object);
    dv_names_fini(&shown->objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shown in_parts = {0};
    struct shown plainly = {0};
    dv_str bytes;

    if (size == 0)
        return 0;
    bytes = (dv_str){(const char *)data + 1, size - 1};
    dv_names_init(&in_parts.objects, name_of);
    dv_names_init(&plainly.objects, name_of);
    feed(&in_parts, bytes, (size_t)data[0] + 1);
    feed_plainly(&plainly, bytes);
    compare(&in_parts, &plainly);
    forget(&in_parts);
    forget(&plainly);
    return 0;
}
