/* bench_json.c - how fast documents are read and printed, and what they take.
 *
 * The body is a list of ResourceSlices as the API serves it. The peer is jansson, looked up when
 * this runs: the module does not need it, and the comparison is why (see json_read.c). */
#include "json/json.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#define BODY_BYTES_MAX (64u * 1024u * 1024u)
#define ROUNDS 15

/* -- The body ------------------------------------------------------------------------------- */

static void add_slice(struct dv_buf *buf, int i)
{
    dv_buf_printf(buf,
                  "{\"metadata\":{\"name\":\"node-%05d-gpu.example.com-x7k2p\",\"uid\":"
                  "\"6ba7b810-9dad-11d1-80b4-00c04fd4%04x\",\"resourceVersion\":\"%d\","
                  "\"generation\":1,\"creationTimestamp\":\"2024-05-01T12:00:00Z\"},"
                  "\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{\"name\":\"node-%05d\","
                  "\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":\"node-%05d\","
                  "\"devices\":[",
                  i, i & 0xffff, 100000 + i, i, i);
    for (int k = 0; k < 2; k++)
        dv_buf_printf(buf,
                      "%s{\"name\":\"gpu-%d\",\"attributes\":{\"index\":{\"int\":%d},"
                      "\"model\":{\"string\":\"LATEST-GPU-MODEL\"},\"driverVersion\":"
                      "{\"version\":\"1.0.0\"},\"shared\":{\"bool\":false}},"
                      "\"capacity\":{\"memory\":{\"value\":\"80Gi\"}}}",
                      k ? "," : "", k, k);
    dv_buf_add(buf, DV_STR("]}}"));
}

static void make_list(struct dv_buf *buf, int n_slices)
{
    dv_buf_add(buf, DV_STR("{\"kind\":\"ResourceSliceList\",\"apiVersion\":\"resource.k8s.io/v1\","
                           "\"metadata\":{\"resourceVersion\":\"4711\"},\"items\":["));
    for (int i = 0; i < n_slices; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        add_slice(buf, i);
    }
    dv_buf_add(buf, DV_STR("]}"));
}

/* -- Measuring ------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

static void report(const char *what, size_t n_bytes, size_t n_nodes, uint64_t best_ns,
                   size_t held_bytes)
{
    printf("%-28s %9.1f MB/s %8.1f ns/node", what, (double)n_bytes * 1000 / (double)best_ns,
           (double)best_ns / (double)n_nodes);
    if (held_bytes > 0)
        printf(" %8.1f bytes/node", (double)held_bytes / (double)n_nodes);
    printf("\n");
}

static size_t count_nodes(const struct dv_json *root)
{
    const struct dv_json *node = root;
    size_t n = 1;

    for (;;) {
        if (dv_json_first(node)) {
            node = dv_json_first(node);
        } else {
            while (node != root && !dv_json_next(node))
                node = dv_json_parent(node);
            if (node == root)
                return n;
            node = dv_json_next(node);
        }
        n++;
    }
}

static struct dv_json *must_parse(bool is_yaml, dv_str text, struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *doc =
        is_yaml ? dv_yaml_parse(text, NULL, arena, &err) : dv_json_parse(text, NULL, arena, &err);

    if (!doc) {
        fprintf(stderr, "bench_json: %s\n", err.msg);
        exit(1);
    }
    return doc;
}

static void bench_parse(const char *what, bool is_yaml, dv_str text)
{
    uint64_t best = UINT64_MAX;
    size_t n_nodes = 0;
    size_t held = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = now_ns();
        struct dv_arena *arena = dv_arena_new();
        struct dv_json *doc = must_parse(is_yaml, text, arena);
        uint64_t took;

        if (i == 0) {
            n_nodes = count_nodes(doc);
            held = dv_arena_size_bytes(arena);
            start = now_ns();
        }
        dv_arena_free(arena);
        took = now_ns() - start;
        if (i > 0 && took < best)
            best = took;
    }
    report(what, text.n, n_nodes, best, held);
}

static void bench_print(const char *what, bool is_yaml, const struct dv_json_style *style,
                        dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc = must_parse(false, text, arena);
    uint64_t best = UINT64_MAX;
    size_t n_bytes = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = now_ns();
        struct dv_buf buf;

        dv_buf_init(&buf, BODY_BYTES_MAX);
        if (is_yaml)
            dv_yaml_print(doc, style, &buf);
        else
            dv_json_print(doc, style, &buf);
        n_bytes = buf.n;
        dv_buf_fini(&buf);
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    report(what, n_bytes, count_nodes(doc), best, 0);
}

static void bench_look_up(dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc = must_parse(false, text, arena);
    const struct dv_json *items = dv_json_get(doc, DV_STR("items"));
    uint64_t best = UINT64_MAX;
    size_t n = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = now_ns();

        n = 0;
        for (const struct dv_json *item = dv_json_first(items); item; item = dv_json_next(item))
            n += dv_json_get(dv_json_get(dv_json_get(item, DV_STR("spec")), DV_STR("pool")),
                             DV_STR("generation")) != NULL;
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    printf("%-28s %31.1f ns each, %zu found\n", "  spec.pool.generation", (double)best / (double)n,
           n);
}

/* -- The peer ------------------------------------------------------------------------------- */

static size_t peer_bytes; /* held now, with the heap's own headers */

static void *peer_malloc(size_t n)
{
    void *p = malloc(n);

    peer_bytes += malloc_usable_size(p) + sizeof(size_t);
    return p;
}

static void peer_free(void *p)
{
    peer_bytes -= p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    free(p);
}

struct peer {
    void *(*loadb)(const char *text, size_t n, size_t flags, void *error);
    void (*delete)(void *value);
    char *(*dumps)(const void *value, size_t flags);
    void (*set_alloc_funcs)(void *(*allocate)(size_t), void (*release)(void *));
};

#define PEER_COMPACT 0x20u /* JSON_COMPACT */

static bool find_peer(struct peer *peer)
{
    void *library = dlopen("libjansson.so.4", RTLD_NOW);

    if (!library)
        return false;
    *(void **)&peer->loadb = dlsym(library, "json_loadb");
    *(void **)&peer->delete = dlsym(library, "json_delete");
    *(void **)&peer->dumps = dlsym(library, "json_dumps");
    *(void **)&peer->set_alloc_funcs = dlsym(library, "json_set_alloc_funcs");
    return peer->loadb && peer->dumps && peer->set_alloc_funcs && peer->delete;
}

static void bench_peer(dv_str text, size_t n_nodes)
{
    char error[512]; /* larger than json_error_t */
    uint64_t best_parse = UINT64_MAX;
    uint64_t best_print = UINT64_MAX;
    struct peer peer;
    size_t held = 0;

    if (!find_peer(&peer)) {
        printf("jansson: not installed\n");
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start;
        uint64_t took;
        void *value;

        peer.set_alloc_funcs(i == 0 ? peer_malloc : malloc, i == 0 ? peer_free : free);
        start = now_ns();
        value = peer.loadb(text.p, text.n, 0, error);
        took = now_ns() - start;
        held = i == 0 ? peer_bytes : held;
        start = now_ns();
        free(peer.dumps(value, PEER_COMPACT));
        best_print = now_ns() - start < best_print ? now_ns() - start : best_print;
        start = now_ns();
        peer.delete(value);
        took += now_ns() - start;
        best_parse = i > 0 && took < best_parse ? took : best_parse;
    }
    report("jansson parse and free", text.n, n_nodes, best_parse, held);
    report("jansson print", text.n, n_nodes, best_print, 0);
}

int main(void)
{
    const struct dv_json_style pretty = {.indent = 4};
    const struct dv_json_style go = {.escape_html = true, .sort_keys = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;
    DV_CLEANUP(dv_buf_fini) struct dv_buf spaced;
    DV_CLEANUP(dv_buf_fini) struct dv_buf yaml;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc;

    dv_buf_init(&body, BODY_BYTES_MAX);
    dv_buf_init(&spaced, BODY_BYTES_MAX);
    dv_buf_init(&yaml, BODY_BYTES_MAX);
    make_list(&body, 3750);
    doc = must_parse(false, dv_buf_str(&body), arena);
    dv_json_print(doc, &pretty, &spaced);
    dv_yaml_print(doc, NULL, &yaml);
    printf("%zu slices, %.1f MB compact, %zu nodes\n", dv_json_n(dv_json_get(doc, DV_STR("items"))),
           (double)body.n / 1e6, count_nodes(doc));
    bench_parse("JSON parse and free", false, dv_buf_str(&body));
    bench_parse("JSON, indented", false, dv_buf_str(&spaced));
    bench_look_up(dv_buf_str(&body));
    bench_print("JSON print", false, NULL, dv_buf_str(&body));
    bench_print("JSON print, indented", false, &pretty, dv_buf_str(&body));
    bench_print("JSON print, Go, sorted", false, &go, dv_buf_str(&body));
    bench_parse("YAML parse and free", true, dv_buf_str(&yaml));
    bench_print("YAML print", true, NULL, dv_buf_str(&body));
    bench_peer(dv_buf_str(&body), count_nodes(doc));
    return 0;
}
