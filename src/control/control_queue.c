/* control_queue.c - a queue of keys. An item is READY, WAITING for its timer, or RUNNING, and it
 * exists only as long as there is something to do for its key. What is added while it runs is
 * remembered in again_ms, so that no event is lost and no key runs twice at a time. */
#include "control/control_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"

/* Two names of an object, which has at most 3 MiB. */
#define KEY_BYTES_MAX (4u * 1024u * 1024u)
/* How many runs are begun in one turn of the loop: most of them end at once, and whatever else is
 * on the loop shall not wait long. */
#define RUNS_PER_TURN 128u
/* Pauses differ by up to a fifth, so that what failed together is not tried again together. */
#define JITTER_PER_MILLE 200u
#define NEVER UINT64_MAX

static void on_task(struct dv_task *task);

/* ---- items ---- */

/* Makes an item of that size, in the place of one that has the key. */
static struct dv_queue_item *new_item(struct dv_queue *queue, size_t bytes, dv_str key,
                                      size_t n_namespace)
{
    struct dv_queue_item *item = dv_alloc(bytes + key.n);
    char *text = (char *)item + bytes;

    memcpy(text, key.p, key.n);
    item->queue = queue;
    item->key = (dv_str){text, key.n};
    item->namespace = dv_str_slice(item->key, 0, n_namespace);
    item->name = dv_str_slice(item->key, n_namespace + 1, key.n);
    (void)dv_map_set(&queue->items, item->key, item); /* replaces the key, too */
    return item;
}

/* Gives an item that is in no list all that its runs need. Until its first one it has nothing but
 * its key: after a start there are as many as objects, and what they leave behind lies between what
 * lasts. */
static struct dv_queue_item *complete(struct dv_queue_item *item)
{
    struct dv_queue_item *whole;

    if (item->is_whole)
        return item;
    whole = new_item(item->queue, item->queue->options.item_bytes, item->key, item->namespace.n);
    whole->is_whole = true;
    free(item);
    return whole;
}

/* ---- running ---- */

void dv_queue_init(struct dv_queue *queue, const struct dv_queue_options *options)
{
    *queue = (struct dv_queue){.options = *options};
    dv_map_init(&queue->items);
    dv_list_init(&queue->ready);
    dv_list_init(&queue->running);
    dv_buf_init(&queue->key, KEY_BYTES_MAX);
}

static void drop(struct dv_queue_item *item)
{
    (void)dv_map_remove(&item->queue->items, item->key);
    dv_timer_cancel(&item->timer);
    dv_link_remove(&item->link);
    free(item);
}

void dv_queue_fini(struct dv_queue *queue)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    assert(queue->n_running == 0);
    dv_task_cancel(&queue->task);
    while ((entry = dv_map_next(&queue->items, &at)) != NULL)
        drop(entry->value);
    dv_map_fini(&queue->items);
    dv_buf_fini(&queue->key);
}

/* Runs begin in the next turn: what has changed in this one has taken its time already. */
static void look(struct dv_queue *queue)
{
    if (queue->is_open && !dv_list_is_empty(&queue->ready) &&
        queue->n_running < queue->options.n_running_max)
        dv_task_post_next_turn(&queue->task, queue->options.loop, on_task);
}

static void make_ready(struct dv_queue_item *item)
{
    dv_timer_cancel(&item->timer);
    item->state = DV_QUEUE_READY;
    dv_list_push(&item->queue->ready, &item->link);
    look(item->queue);
}

static void on_timer(struct dv_timer *timer)
{
    make_ready(DV_CONTAINER(timer, struct dv_queue_item, timer));
}

static void wait_until(struct dv_queue_item *item, uint64_t at_ms)
{
    if (at_ms <= dv_loop_now_ms(item->queue->options.loop)) {
        make_ready(item);
        return;
    }
    item->state = DV_QUEUE_WAITING;
    dv_timer_start(&item->timer, item->queue->options.loop, at_ms, on_timer);
}

static void on_task(struct dv_task *task)
{
    struct dv_queue *queue = DV_CONTAINER(task, struct dv_queue, task);
    size_t n_runs = 0;

    while (queue->is_open && n_runs++ < RUNS_PER_TURN &&
           queue->n_running < queue->options.n_running_max) {
        struct dv_link *link = dv_list_shift(&queue->ready);
        struct dv_queue_item *item;

        if (!link)
            return;
        item = complete(DV_CONTAINER(link, struct dv_queue_item, link));
        item->state = DV_QUEUE_RUNNING;
        item->again_ms = NEVER;
        dv_list_push(&queue->running, &item->link);
        queue->n_running++;
        queue->options.run(item);
    }
    look(queue);
}

void dv_queue_start(struct dv_queue *queue)
{
    queue->is_open = !queue->is_stopping;
    look(queue);
}

static void check_stopped(struct dv_queue *queue)
{
    if (queue->is_stopping && queue->n_running == 0)
        queue->options.stopped(queue);
}

void dv_queue_stop(struct dv_queue *queue)
{
    struct dv_link *link = queue->running.head.next;

    queue->is_open = false;
    dv_task_cancel(&queue->task);
    while (link != &queue->running.head) {
        struct dv_queue_item *item = DV_CONTAINER(link, struct dv_queue_item, link);

        link = link->next;
        queue->options.cancel(item);
    }
    queue->is_stopping = true;
    check_stopped(queue);
}

/* ---- adding ---- */

/* The key of an object, borrowed until the next one is made. */
static dv_str make_key(struct dv_queue *queue, dv_str namespace, dv_str name)
{
    dv_buf_clear(&queue->key);
    dv_buf_add(&queue->key, namespace);
    dv_buf_add_char(&queue->key, '/');
    dv_buf_add(&queue->key, name);
    assert(!queue->key.is_over);
    return dv_buf_str(&queue->key);
}

static void add_at(struct dv_queue *queue, dv_str namespace, dv_str name, uint64_t at_ms)
{
    struct dv_queue_item *item;
    dv_str key;

    if (queue->is_stopping)
        return;
    key = make_key(queue, namespace, name);
    item = dv_map_get(&queue->items, key);
    if (!item) {
        item = new_item(queue, sizeof(*item), key, namespace.n);
        wait_until(item, at_ms);
        return;
    }
    switch (item->state) {
    case DV_QUEUE_READY:
        break;
    case DV_QUEUE_WAITING:
        if (at_ms < item->timer.at_ms)
            wait_until(item, at_ms);
        break;
    case DV_QUEUE_RUNNING:
        item->again_ms = dv_u64_min(item->again_ms, at_ms);
        break;
    }
}

void dv_queue_add(struct dv_queue *queue, dv_str namespace, dv_str name)
{
    add_at(queue, namespace, name, 0);
}

void dv_queue_add_after(struct dv_queue *queue, dv_str namespace, dv_str name, uint64_t ms)
{
    add_at(queue, namespace, name, dv_u64_add_clamped(dv_loop_now_ms(queue->options.loop), ms));
}

/* ---- ends of runs ---- */

static void end_run(struct dv_queue_item *item, uint64_t again_ms)
{
    struct dv_queue *queue = item->queue;

    assert(item->state == DV_QUEUE_RUNNING);
    dv_link_remove(&item->link);
    queue->n_running--;
    if (again_ms == NEVER || queue->is_stopping)
        drop(item);
    else
        wait_until(item, again_ms);
    look(queue);
    check_stopped(queue);
}

void dv_queue_finish(struct dv_queue_item *item)
{
    item->n_failures = 0;
    end_run(item, item->again_ms);
}

void dv_queue_finish_after(struct dv_queue_item *item, uint64_t ms)
{
    uint64_t at_ms = dv_u64_add_clamped(dv_loop_now_ms(item->queue->options.loop), ms);

    item->n_failures = 0;
    end_run(item, dv_u64_min(item->again_ms, at_ms));
}

uint64_t dv_queue_retry(struct dv_queue_item *item, uint64_t ms_min)
{
    uint64_t pause_ms = DV_QUEUE_RETRY_MAX_MS;

    /* 5 ms doubled 14 times is past the longest pause, and more could overflow. */
    if (item->n_failures < 14)
        pause_ms = dv_u64_min((uint64_t)DV_QUEUE_RETRY_MS << item->n_failures, pause_ms);
    pause_ms = dv_u64_max(dv_jitter(pause_ms, JITTER_PER_MILLE), ms_min);
    item->n_failures++;
    item->queue->n_retries++;
    end_run(item, dv_u64_add_clamped(dv_loop_now_ms(item->queue->options.loop), pause_ms));
    return pause_ms;
}

bool dv_queue_is_busy_with(struct dv_queue *queue, dv_str namespace, dv_str name)
{
    const struct dv_queue_item *item = dv_map_get(&queue->items, make_key(queue, namespace, name));

    return item && item->state != DV_QUEUE_WAITING && item->n_failures == 0;
}

size_t dv_queue_n(const struct dv_queue *queue)
{
    return queue->items.n - queue->n_running;
}
