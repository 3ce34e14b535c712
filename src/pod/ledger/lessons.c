#include "pod/ledger/lessons.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/key.h"
#include "base/str.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"

/* An answer for more devices than this says little about any of them and is not learned from. */
#define DEVICES_MAX 64u
/* No machine has so many device nodes; when the limit is reached nothing new is learned. */
#define LESSONS_MAX 65536u
/* A key that is longer is not learned. */
#define KEY_BYTES_MAX 8192u

struct lesson {
    dv_str key;
    dv_str *devices; /* what all answers had in common; none: it is common */
    size_t n_devices;
    char *text; /* of all of these */
};

static void lesson_free(struct lesson *lesson)
{
    free(lesson->devices);
    free(lesson->text);
    free(lesson);
}

void dv_lessons_init(struct dv_lessons *lessons)
{
    dv_map_init(&lessons->by_key);
}

void dv_lessons_fini(struct dv_lessons *lessons)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&lessons->by_key, &at)) != NULL;)
        lesson_free(entry->value);
    dv_map_fini(&lessons->by_key);
}

/* Prints the key of a lesson. False: it is too long. */
static bool print_key(const struct dv_ledger_holder *holder, const struct dv_identity *identity,
                      struct dv_buf *key)
{
    dv_buf_init(key, KEY_BYTES_MAX);
    dv_buf_add_char(key, holder->giver_kind == DV_LEDGER_PLUGIN ? 'p' : 'd');
    dv_buf_add_char(key, (char)('0' + (int)identity->kind));
    dv_key_add(key, holder->giver);
    dv_key_add(key, identity->text);
    return !key->is_over;
}

static bool can_teach(const struct dv_ledger_holder *holder, const struct dv_identity *identity)
{
    return (identity->kind == DV_IDENTITY_NODE || identity->kind == DV_IDENTITY_PATH) &&
           holder->n_devices > 0 && holder->n_devices <= DEVICES_MAX;
}

static bool holder_has(const struct dv_ledger_holder *holder, dv_str device)
{
    for (size_t i = 0; i < holder->n_devices; i++) {
        if (dv_str_eq(dv_identity_device_of(holder->devices[i]), device))
            return true;
    }
    return false;
}

static size_t keep_held(struct lesson *lesson, const struct dv_ledger_holder *holder)
{
    size_t n = 0;

    for (size_t i = 0; i < lesson->n_devices; i++) {
        if (holder_has(holder, lesson->devices[i]))
            lesson->devices[n++] = lesson->devices[i];
    }
    return n;
}

static struct lesson *lesson_new(dv_str key, const struct dv_ledger_holder *holder)
{
    struct lesson *lesson = DV_ALLOC(struct lesson);
    size_t n = key.n;
    char *at;

    for (size_t i = 0; i < holder->n_devices; i++)
        n += holder->devices[i].n;
    lesson->text = dv_alloc(n);
    lesson->devices = dv_alloc(holder->n_devices * sizeof(dv_str));
    at = lesson->text;
    lesson->key = dv_str_put(key, &at);
    for (size_t i = 0; i < holder->n_devices; i++)
        lesson->devices[lesson->n_devices++] =
            dv_str_put(dv_identity_device_of(holder->devices[i]), &at);
    return lesson;
}

void dv_lessons_learn(struct dv_lessons *lessons, const struct dv_ledger_holder *holder,
                      const struct dv_identity *identity)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf key = {0};
    struct lesson *lesson;

    if (!can_teach(holder, identity) || !print_key(holder, identity, &key))
        return;
    lesson = dv_map_get(&lessons->by_key, dv_buf_str(&key));
    if (lesson) {
        lesson->n_devices = keep_held(lesson, holder);
    } else if (lessons->by_key.n < LESSONS_MAX) {
        lesson = lesson_new(dv_buf_str(&key), holder);
        (void)dv_map_set(&lessons->by_key, lesson->key, lesson);
    }
}

bool dv_lessons_is_common(const struct dv_lessons *lessons, const struct dv_ledger_holder *holder,
                          const struct dv_identity *identity, bool counts_holder)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf key = {0};
    const struct lesson *lesson;

    if (identity->kind == DV_IDENTITY_PCI || identity->kind == DV_IDENTITY_UUID ||
        !print_key(holder, identity, &key))
        return false;
    lesson = dv_map_get(&lessons->by_key, dv_buf_str(&key));
    if (!lesson)
        return false;
    if (lesson->n_devices == 0)
        return true;
    if (!counts_holder || !can_teach(holder, identity))
        return false;
    for (size_t i = 0; i < lesson->n_devices; i++) {
        if (holder_has(holder, lesson->devices[i]))
            return false;
    }
    return true;
}
