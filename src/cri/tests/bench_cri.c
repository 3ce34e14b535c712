/* bench_cri.c - what the listing costs that comes every second, read in place and read whole.
 *
 * A pod is a container with the labels and annotations that a kubelet gives it. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "cri/cri_list.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "support/bench.h"

#define LISTING_BYTES_MAX (16u << 20)
/* The best of some runs counts: the rest is other programs. */
#define RUNS 50

static void add_pair(struct dv_buf *buf, uint32_t number, const char *key, dv_str value)
{
    size_t mark = dv_pb_begin(buf, number);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(key));
    dv_pb_add_bytes(buf, 2, value);
    dv_pb_end(buf, mark);
}

static void add_container(struct dv_buf *buf, unsigned number)
{
    static const char *const annotations[] = {
        "io.kubernetes.container.hash",
        "io.kubernetes.container.restartCount",
        "io.kubernetes.container.terminationMessagePath",
        "io.kubernetes.container.terminationMessagePolicy",
        "io.kubernetes.pod.terminationGracePeriod",
    };
    size_t mark = dv_pb_begin(buf, 1);
    char text[65];
    int n = snprintf(text, sizeof(text), "%064x", number);
    dv_str id = {text, (size_t)n};

    dv_pb_add_bytes(buf, 1, id);
    dv_pb_add_bytes(buf, 2, id);
    dv_pb_add_bytes(buf, 5, id);
    dv_pb_add_number(buf, 6, 1);
    dv_pb_add_number(buf, 7, 1700000000000000000u);
    add_pair(buf, 8, "io.kubernetes.container.name", DV_STR("main"));
    add_pair(buf, 8, "io.kubernetes.pod.name", dv_str_slice(id, 32, 64));
    add_pair(buf, 8, "io.kubernetes.pod.namespace", DV_STR("default"));
    add_pair(buf, 8, DV_CRI_LABEL_POD_UID, dv_str_slice(id, 28, 64));
    for (size_t i = 0; i < DV_COUNT(annotations); i++)
        add_pair(buf, 9, annotations[i], DV_STR("/dev/termination-log"));
    dv_pb_end(buf, mark);
}

static uint64_t measure(dv_str listing, bool is_whole, unsigned n_pods)
{
    uint64_t best_ns = UINT64_MAX;

    for (int run = 0; run < RUNS; run++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_cri_list list = {.n = 0};
        uint64_t start_ns = bench_now_ns();
        uint64_t ns;
        struct dv_err err;

        if (is_whole) {
            bench_must(
                dv_pb_decode(&cri_v1__list_containers_response__descriptor, listing, arena, &err),
                "decode", &err);
        } else {
            bench_must(dv_cri_list_read(DV_CRI_CONTAINER, listing, arena, &list, &err), "read",
                       &err);
            assert(list.n == n_pods);
        }
        ns = bench_now_ns() - start_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return best_ns;
}

int main(void)
{
    static const unsigned sizes[] = {1, 100, 1000, 10000};

    (void)printf("%-8s %10s %12s %12s\n", "pods", "bytes", "in place us", "whole us");
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        struct dv_buf buf;

        dv_buf_init(&buf, LISTING_BYTES_MAX);
        for (unsigned pod = 0; pod < sizes[i]; pod++)
            add_container(&buf, pod);
        (void)printf("%-8u %10zu %12.1f %12.1f\n", sizes[i], buf.n,
                     (double)measure(dv_buf_str(&buf), false, sizes[i]) / 1000,
                     (double)measure(dv_buf_str(&buf), true, sizes[i]) / 1000);
        dv_buf_fini(&buf);
    }
    return 0;
}
