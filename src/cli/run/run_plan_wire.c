#include "cli/run/run_plan_wire.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "engines/engines.h"

/* Both ends are the same program on the same machine: numbers are as they are in memory. */
static void add_number(struct dv_buf *buf, size_t n)
{
    dv_buf_add(buf, (dv_str){(const char *)&n, sizeof(n)});
}

static void add_text(struct dv_buf *buf, dv_str text)
{
    add_number(buf, text.n);
    dv_buf_add(buf, text);
}

static void add_texts(struct dv_buf *buf, const dv_str *texts, size_t n)
{
    add_number(buf, n);
    for (size_t i = 0; i < n; i++)
        add_text(buf, texts[i]);
}

void dv_run_plan_encode(const struct dv_engine_plan *plan, bool is_isolated, struct dv_buf *buf)
{
    add_number(buf, is_isolated);
    add_texts(buf, plan->words, plan->n_words);
    add_texts(buf, plan->env, plan->n_env);
    add_number(buf, plan->n_nodes);
    for (size_t i = 0; i < plan->n_nodes; i++) {
        add_text(buf, plan->nodes[i].path);
        add_text(buf, plan->nodes[i].host_path);
    }
    add_number(buf, plan->n_mounts);
    for (size_t i = 0; i < plan->n_mounts; i++) {
        add_text(buf, plan->mounts[i].path);
        add_text(buf, plan->mounts[i].host_path);
        add_number(buf, plan->mounts[i].is_read_only);
    }
    add_number(buf, plan->n_gids);
    for (size_t i = 0; i < plan->n_gids; i++)
        add_number(buf, plan->gids[i]);
}

struct reading {
    dv_str rest;
    bool is_bad;
    struct dv_arena *arena;
};

static size_t read_number(struct reading *reading)
{
    size_t n = 0;

    if (reading->rest.n < sizeof(n)) {
        reading->is_bad = true;
        return 0;
    }
    memcpy(&n, reading->rest.p, sizeof(n));
    reading->rest = dv_str_slice(reading->rest, sizeof(n), reading->rest.n);
    return n;
}

/* A number of things that are at least a number each. */
static size_t read_count(struct reading *reading)
{
    size_t n = read_number(reading);

    if (n > reading->rest.n / sizeof(n)) {
        reading->is_bad = true;
        return 0;
    }
    return n;
}

static dv_str read_text(struct reading *reading)
{
    size_t n = read_number(reading);
    dv_str text = dv_str_slice(reading->rest, 0, n);

    reading->is_bad |= text.n < n;
    reading->rest = dv_str_slice(reading->rest, text.n, reading->rest.n);
    return text;
}

static dv_str *read_texts(struct reading *reading, size_t *n)
{
    dv_str *texts;

    *n = read_count(reading);
    texts = DV_NEW_ARRAY(reading->arena, dv_str, *n);
    for (size_t i = 0; i < *n; i++)
        texts[i] = read_text(reading);
    return texts;
}

bool dv_run_plan_decode(dv_str bytes, struct dv_arena *arena, struct dv_engine_plan *plan,
                        bool *is_isolated)
{
    struct reading reading = {bytes, false, arena};

    *plan = (struct dv_engine_plan){0};
    *is_isolated = read_number(&reading) != 0;
    plan->words = read_texts(&reading, &plan->n_words);
    plan->env = read_texts(&reading, &plan->n_env);
    plan->n_nodes = read_count(&reading);
    plan->nodes = DV_NEW_ARRAY(arena, struct dv_engine_node, plan->n_nodes);
    for (size_t i = 0; i < plan->n_nodes; i++) {
        plan->nodes[i].path = read_text(&reading);
        plan->nodes[i].host_path = read_text(&reading);
    }
    plan->n_mounts = read_count(&reading);
    plan->mounts = DV_NEW_ARRAY(arena, struct dv_engine_mount, plan->n_mounts);
    for (size_t i = 0; i < plan->n_mounts; i++) {
        plan->mounts[i].path = read_text(&reading);
        plan->mounts[i].host_path = read_text(&reading);
        plan->mounts[i].is_read_only = read_number(&reading) != 0;
    }
    plan->n_gids = read_count(&reading);
    plan->gids = DV_NEW_ARRAY(arena, uint32_t, plan->n_gids);
    for (size_t i = 0; i < plan->n_gids; i++)
        plan->gids[i] = (uint32_t)read_number(&reading);
    return !reading.is_bad && reading.rest.n == 0;
}
