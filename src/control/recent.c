/* recent.c - a set of uids of bounded size that forgets the oldest first. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "control/controllers.h"

struct uid {
    struct dv_link link;
    dv_str text;
};

void dv_recent_init(struct dv_recent *recent, size_t n_max)
{
    *recent = (struct dv_recent){.n_max = n_max};
    dv_map_init(&recent->uids);
    dv_list_init(&recent->order);
}

static void forget_first(struct dv_recent *recent)
{
    struct uid *uid = DV_CONTAINER(dv_list_shift(&recent->order), struct uid, link);

    (void)dv_map_remove(&recent->uids, uid->text);
    free(uid);
}

void dv_recent_fini(struct dv_recent *recent)
{
    while (!dv_list_is_empty(&recent->order))
        forget_first(recent);
    dv_map_fini(&recent->uids);
}

void dv_recent_add(struct dv_recent *recent, dv_str text)
{
    struct uid *uid;

    if (text.n == 0 || dv_map_get(&recent->uids, text))
        return;
    if (recent->uids.n >= recent->n_max)
        forget_first(recent);
    uid = dv_alloc(sizeof(*uid) + text.n);
    memcpy(uid + 1, text.p, text.n);
    uid->text = (dv_str){(const char *)(uid + 1), text.n};
    dv_list_push(&recent->order, &uid->link);
    (void)dv_map_set(&recent->uids, uid->text, uid); /* looked up above: there was none */
}

bool dv_recent_has(const struct dv_recent *recent, dv_str uid)
{
    return dv_map_get(&recent->uids, uid) != NULL;
}
