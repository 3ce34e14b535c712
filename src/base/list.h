/* list.h - doubly linked lists through a member of the elements.
 *
 * An element is in at most one list through one link. A zeroed link is in no list, so elements
 * need no set-up; a head does. */
#ifndef DV_BASE_LIST_H
#define DV_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct dv_link {
    struct dv_link *prev;
    struct dv_link *next;
};

struct dv_list {
    struct dv_link head; /* the ring's fixed point: head.next is the first element */
};

static inline void dv_list_init(struct dv_list *list)
{
    list->head.prev = list->head.next = &list->head;
}

static inline bool dv_list_is_empty(const struct dv_list *list)
{
    return list->head.next == &list->head;
}

static inline bool dv_link_is_in(const struct dv_link *link)
{
    return link->next != NULL;
}

static inline void dv_link_insert_before(struct dv_link *place, struct dv_link *link)
{
    link->prev = place->prev;
    link->next = place;
    place->prev->next = link;
    place->prev = link;
}

static inline void dv_list_push(struct dv_list *list, struct dv_link *link)
{
    dv_link_insert_before(&list->head, link);
}

static inline void dv_list_push_front(struct dv_list *list, struct dv_link *link)
{
    dv_link_insert_before(list->head.next, link);
}

/* Out of its list; nothing happens when it is in none. */
static inline void dv_link_remove(struct dv_link *link)
{
    if (!link->next)
        return;
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
}

static inline struct dv_link *dv_list_first(const struct dv_list *list)
{
    return dv_list_is_empty(list) ? NULL : list->head.next;
}

/* The first element, taken out; NULL when the list is empty. */
static inline struct dv_link *dv_list_shift(struct dv_list *list)
{
    struct dv_link *link = dv_list_first(list);

    if (link)
        dv_link_remove(link);
    return link;
}

/* Moves all elements of `from`, in order, to the end of `to`. */
static inline void dv_list_move_all(struct dv_list *to, struct dv_list *from)
{
    struct dv_link *link;

    while ((link = dv_list_shift(from)) != NULL)
        dv_list_push(to, link);
}

/* Walks with `link` (declared by you). The body must not remove elements; to take out while
 * walking, shift or keep the next link first. */
#define DV_LIST_EACH(list, link)                                                                   \
    for ((link) = (list)->head.next; (link) != &(list)->head; (link) = (link)->next)

#endif
