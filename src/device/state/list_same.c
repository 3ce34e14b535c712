/* list_same.c - a list that is the last one but for a few devices, as most are: a plugin sends all
 * of its devices whenever the health of one changes.
 *
 *     last list   | the same ............ | entries that differ  | the same ............ |
 *     new list    | the same ............ | as many, same ids    | the same ............ |
 *
 * The bytes are compared before anything is decoded, and only the entries in the middle are read.
 * An entry is a device where the last list had nothing but devices, each once: only the bytes of
 * such a list are kept. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device.h"
#include "device/state/device_state.h"

/* Compared at once: the first difference is then looked for in so many bytes. */
#define BLOCK_BYTES 512u
/* What differs is read on the loop, so that it must not be much: some thousand devices. */
#define MIDDLE_BYTES_MAX (64u * 1024u)
/* Room for changes of health, which make entries longer. */
#define TEXT_SLACK_BYTES 64u

/* ---- the bytes of the last list ---- */

void dv_device_text_fini(struct dv_device_text *text)
{
    free(text->p);
    *text = (struct dv_device_text){0};
}

/* Gives the text the size, and room for a little more. */
static void resize(struct dv_device_text *text, size_t n)
{
    if (n > text->size) {
        text->size = n + TEXT_SLACK_BYTES;
        text->p = dv_realloc(text->p, text->size);
    }
    text->n = n;
}

void dv_device_text_set(struct dv_device_text *text, dv_str bytes)
{
    if (bytes.n + TEXT_SLACK_BYTES < text->size / 2)
        dv_device_text_fini(text);
    resize(text, bytes.n);
    if (bytes.n > 0)
        memcpy(text->p, bytes.p, bytes.n);
}

/* Puts `middle` into the place of the bytes from `start` to `end`. */
static void splice(struct dv_device_text *text, size_t start, size_t end, dv_str middle)
{
    size_t n_after = text->n - end;

    resize(text, start + middle.n + n_after);
    if (start + middle.n != end)
        memmove(text->p + start + middle.n, text->p + end, n_after);
    if (middle.n > 0)
        memcpy(text->p + start, middle.p, middle.n);
}

/* ---- comparison ---- */

static size_t n_same_at_start(dv_str a, dv_str b)
{
    size_t n = dv_size_min(a.n, b.n);
    size_t at = 0;

    while (at + BLOCK_BYTES <= n && memcmp(a.p + at, b.p + at, BLOCK_BYTES) == 0)
        at += BLOCK_BYTES;
    while (at < n && a.p[at] == b.p[at])
        at++;
    return at;
}

static size_t n_same_at_end(dv_str a, dv_str b)
{
    size_t n = dv_size_min(a.n, b.n);
    const char *a_end = a.p + a.n;
    const char *b_end = b.p + b.n;
    size_t at = 0;

    while (at + BLOCK_BYTES <= n &&
           memcmp(a_end - at - BLOCK_BYTES, b_end - at - BLOCK_BYTES, BLOCK_BYTES) == 0)
        at += BLOCK_BYTES;
    while (at < n && a_end[-1 - (ptrdiff_t)at] == b_end[-1 - (ptrdiff_t)at])
        at++;
    return at;
}

/* Returns where the entry ends that begins at `at`. The bytes have been read before: there is one,
 * and it is whole. */
static size_t entry_end(dv_str bytes, size_t at)
{
    size_t n = 0;
    unsigned shift = 0;
    unsigned char byte;

    at++; /* the tag, which is a byte */
    do {
        byte = (unsigned char)bytes.p[at++];
        n |= (size_t)(byte & 0x7fu) << shift;
        shift += 7;
    } while (byte & 0x80u);
    return at + n;
}

/* What differs: whole entries of the last list, and the bytes that the new one has there. */
struct middle {
    size_t first; /* entry */
    size_t n_entries;
    size_t start; /* in both lists */
    size_t end;   /* in the last one */
    dv_str bytes; /* of the new one */
};

static bool find_middle(dv_str last, dv_str bytes, struct middle *middle)
{
    size_t n_same = n_same_at_start(last, bytes);
    size_t n_tail, at, next;

    *middle = (struct middle){0};
    for (at = 0; at < last.n && (next = entry_end(last, at)) <= n_same; at = next)
        middle->first++;
    middle->start = at;
    n_tail = n_same_at_end(dv_str_slice(last, at, last.n), dv_str_slice(bytes, at, bytes.n));
    for (; at < last.n - n_tail; at = entry_end(last, at))
        middle->n_entries++;
    middle->end = at;
    n_tail = last.n - at; /* the entries that are the same as a whole */
    middle->bytes = dv_str_slice(bytes, middle->start, bytes.n - n_tail);
    return middle->bytes.n <= MIDDLE_BYTES_MAX && middle->end - middle->start <= MIDDLE_BYTES_MAX;
}

bool dv_device_apply_same(struct dv_device_state *state, dv_str resource_name, dv_str bytes,
                          struct dv_arena *arena, struct dv_device_diff *diff)
{
    struct dv_device_resource *resource = dv_device_resource_find(state, resource_name);
    struct middle middle;

    if (!resource || !resource->is_listed || resource->sets != DV_DEVICE_SETS_LIVE ||
        resource->text.n == 0 || bytes.n > DV_DEVICE_LIST_BYTES_MAX ||
        !find_middle((dv_str){resource->text.p, resource->text.n}, bytes, &middle) ||
        !dv_device_list_change(resource, middle.bytes, middle.first, middle.n_entries, arena, diff))
        return false;
    splice(&resource->text, middle.start, middle.end, middle.bytes);
    resource->list_number = ++state->n_lists;
    return true;
}
