/* What the pure part of device plugins costs: a list, a flip in it, an allocation. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "pb/pb.h"

#define LIST_BYTES_MAX (64u * 1024u * 1024u)
#define RESOURCE DV_STR("vendor.io/gpu")
#define NODES 2u
/* Each measurement is made this often, and the best counts: the rest is other programs. */
#define RUNS 9u
#define PICKS 2000u

static double now_us(void)
{
    struct timespec now;

    /* Of this program alone, so that others on the machine do not count. */
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* exists on every Linux */
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double least(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

static void must(bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

/* -- Lists ---------------------------------------------------------------------------------- */

struct list_shape {
    unsigned n;
    unsigned n_unhealthy; /* the first of them */
    bool is_shuffled;     /* not in the order of ids, as from a Go map */
    bool is_hex;          /* ids of 40 bytes */
};

/* With a NUMA node each, as a GPU plugin sends them. */
static void write_list(struct dv_buf *buf, const struct list_shape *shape)
{
    dv_buf_clear(buf);
    for (unsigned i = 0; i < shape->n; i++) {
        unsigned k = shape->is_shuffled ? (unsigned)((uint64_t)i * 7919u % shape->n) : i;
        size_t device = dv_pb_begin(buf, 1);
        char id[64];
        size_t topology, node;

        if (shape->is_hex)
            (void)snprintf(id, sizeof(id), "GPU-%08x-7a5c-4be1-9d40-%012x", k * 2654435761u, k);
        else
            (void)snprintf(id, sizeof(id), "nvme-%u", k);
        dv_pb_add_bytes(buf, 1, dv_str_from_c(id));
        dv_pb_add_bytes(buf, 2, k < shape->n_unhealthy ? DV_STR("Unhealthy") : DV_STR("Healthy"));
        topology = dv_pb_begin(buf, 3);
        node = dv_pb_begin(buf, 1);
        if (k % NODES != 0)
            dv_pb_add_number(buf, 1, k % NODES);
        dv_pb_end(buf, node);
        dv_pb_end(buf, topology);
        dv_pb_end(buf, device);
    }
}

static double apply(struct dv_device_state *state, dv_str bytes, size_t n_changes)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_diff diff;
    struct dv_err err = {.code = DV_INTERNAL, .msg = "not what changed"};
    double start = now_us();

    must(dv_device_apply_list(state, RESOURCE, bytes, arena, &diff, &err), &err);
    start = now_us() - start;
    must(diff.n_changes == n_changes,
         &(struct dv_err){.code = DV_INTERNAL, .msg = "not what changed"});
    return start;
}

static void bench_list(unsigned n, bool is_shuffled, bool is_hex)
{
    struct list_shape shape = {.n = n, .is_shuffled = is_shuffled, .is_hex = is_hex};
    struct dv_buf well, flipped, turned, longer;
    double first = 0;
    double flip = 0;
    double turned_flip = 0; /* all devices are at other places in the list, too */
    double added = 0;

    dv_buf_init(&well, LIST_BYTES_MAX);
    dv_buf_init(&flipped, LIST_BYTES_MAX);
    dv_buf_init(&turned, LIST_BYTES_MAX);
    dv_buf_init(&longer, LIST_BYTES_MAX);
    write_list(&well, &shape);
    shape.n_unhealthy = 1;
    write_list(&flipped, &shape);
    shape.is_shuffled = !is_shuffled;
    write_list(&turned, &shape);
    shape = (struct list_shape){.n = n + 1, .is_hex = is_hex};
    write_list(&longer, &shape);
    for (unsigned i = 0; i < RUNS; i++) {
        struct dv_device_state *state = dv_device_state_new(NULL);

        first = least(first, apply(state, dv_buf_str(&well), n));
        flip = least(flip, apply(state, dv_buf_str(&flipped), 1));
        (void)apply(state, dv_buf_str(&well), 1); /* and back */
        turned_flip = least(turned_flip, apply(state, dv_buf_str(&turned), 1));
        (void)apply(state, dv_buf_str(&well), 1);
        added = least(added, apply(state, dv_buf_str(&longer), 1));
        dv_device_state_free(state);
    }
    printf("%9u  %-8s %-9s %6.1f %10.2f %10.2f %10.2f %10.2f\n", n, is_hex ? "40 bytes" : "short",
           is_shuffled ? "shuffled" : "in order", (double)well.n / 1e6, first / 1e3, flip / 1e3,
           turned_flip / 1e3, added / 1e3);
    dv_buf_fini(&well);
    dv_buf_fini(&flipped);
    dv_buf_fini(&turned);
    dv_buf_fini(&longer);
}

/* -- Allocations ---------------------------------------------------------------------------- */

static void allocate(struct dv_device_state *state, unsigned pod, int64_t amount)
{
    struct dv_device_limit limit = {.resource = RESOURCE, .amount = amount};
    struct dv_err err = {.code = DV_INTERNAL, .msg = "not allocated"};
    struct dv_device_operation *op;
    char uid[64];

    (void)snprintf(uid, sizeof(uid), "3f2c7d1e-0000-4000-8000-%012u", pod);
    dv_device_activate_pod(state, dv_str_from_c(uid));
    op = dv_device_allocate(state, &(struct dv_device_request){
                                       .pod_uid = dv_str_from_c(uid),
                                       .container = DV_STR("main"),
                                       .kind = DV_DEVICE_REGULAR,
                                       .limits = &limit,
                                       .n_limits = 1,
                                       .affinity = {.mask = 1, .has_mask = true},
    });
    must(dv_device_operation_step(op)->kind == DV_DEVICE_ASK_ALLOCATE, &err);
    dv_device_operation_answer(op, DV_STR("\x0a\x00"));
    must(dv_device_operation_step(op)->kind == DV_DEVICE_DONE, &err);
    dv_device_operation_free(op);
}

static void release(struct dv_device_state *state, unsigned pod)
{
    char uid[64];

    (void)snprintf(uid, sizeof(uid), "3f2c7d1e-0000-4000-8000-%012u", pod);
    dv_device_deactivate_pod(state, dv_str_from_c(uid));
    (void)dv_device_collect(state); /* one, each time */
}

/* A state with so many devices, and so many pods that hold one each. */
static struct dv_device_state *make_state(unsigned n_devices, unsigned n_pods)
{
    struct list_shape shape = {.n = n_devices, .is_hex = true};
    struct dv_device_plugin_options options = {0};
    struct dv_device_state *state = dv_device_state_new(NULL);
    struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, LIST_BYTES_MAX);
    write_list(&buf, &shape);
    dv_device_set_sources_ready(state, true);
    must(dv_device_connect(state, RESOURCE, DV_STR("a.sock"), &options, &err), &err);
    (void)apply(state, dv_buf_str(&buf), n_devices);
    for (unsigned i = 0; i < n_pods; i++)
        allocate(state, i, 1);
    dv_buf_fini(&buf);
    return state;
}

static void bench_pick(unsigned n_devices, unsigned n_pods)
{
    static const int64_t amounts[] = {1, 8};
    struct dv_device_state *state = make_state(n_devices, n_pods);
    const struct dv_row_change *writes;
    unsigned n_picks = 0;

    printf("%9u %9u", n_devices, n_pods);
    for (size_t i = 0; i < DV_COUNT(amounts); i++) {
        double best = 0;

        for (unsigned run = 0; run < RUNS; run++) {
            struct dv_arena *arena = dv_arena_new();
            double start = now_us();

            for (unsigned k = 0; k < PICKS; k++) {
                allocate(state, n_pods + n_picks, amounts[i]);
                (void)dv_device_take_changes(state, arena, &writes); /* one */
                dv_arena_reset(arena);
                release(state, n_pods + n_picks++);
            }
            best = least(best, (now_us() - start) / PICKS);
            dv_arena_free(arena);
        }
        printf(" %14.2f", best);
    }
    printf("\n");
    dv_device_state_free(state);
}

int main(void)
{
    static const unsigned sizes[] = {1000, 10000, 100000};
    static const unsigned pods[] = {10, 1000, 10000};

    printf("a ListAndWatch answer becomes the list (ms)\n"
           "  devices  ids      sent         MB      first   one flip  reordered  one added\n");
    for (size_t i = 0; i < DV_COUNT(sizes); i++)
        for (unsigned shape = 0; shape < 4; shape++)
            bench_list(sizes[i], shape & 1, shape & 2);
    printf("\nallocate, encode the record, collect (us), plugin's own time excluded\n"
           "  devices      pods       1 device      8 devices\n");
    for (size_t i = 0; i < DV_COUNT(pods); i++)
        bench_pick(30000, pods[i]);
    bench_pick(100, 10);
    bench_pick(100000, 10000);
    return 0;
}
