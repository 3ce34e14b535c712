/* bench_object.c - what reading and writing objects costs, beside reading their JSON alone: a slice
 * of 128 devices, a claim and a pod. */
#include "resource/resource.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "json/json.h"

/* Each is measured this often, and its best run counts: the rest is other programs. */
#define RUNS 15
#define N_DEVICES 128
#define TEXT_BYTES_MAX (16u * 1024u * 1024u)

struct work {
    const struct dv_kind *kind;
    const struct dv_message *message;
    dv_str json;
    dv_str pb;
    struct dv_object *object;
    struct dv_arena *arena;
    struct dv_buf buf;
    size_t sum; /* so that nothing is optimized away */
};

static struct dv_json *parse(struct work *work)
{
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(work->json, NULL, work->arena, &err);

    if (!doc)
        printf("%s\n", err.msg);
    return doc;
}

static void run_parse(struct work *work)
{
    work->sum += dv_json_n(parse(work));
}

static void *decode(struct work *work)
{
    void *value = dv_arena_alloc(work->arena, work->message->size, work->message->align);
    struct dv_err err;

    if (!dv_decode_json(work->message, parse(work), DV_UNKNOWN_DROP, work->arena, value, NULL,
                        &err))
        printf("%s\n", err.msg);
    return value;
}

static void run_decode(struct work *work)
{
    work->sum += *(unsigned char *)decode(work);
}

static void run_encode(struct work *work)
{
    dv_buf_clear(&work->buf);
    dv_encode_json_text(work->message, work->object->value, NULL, DV_STR_NONE, &work->buf);
    work->sum += work->buf.n;
}

static void run_document(struct work *work)
{
    work->sum += dv_json_n(
        dv_encode_json(work->message, work->object->value, NULL, DV_STR_NONE, work->arena));
}

static void run_decode_pb(struct work *work)
{
    void *value = dv_arena_alloc(work->arena, work->message->size, work->message->align);
    struct dv_err err;

    if (!dv_decode_pb(work->message, work->pb, work->arena, value, &err))
        printf("%s\n", err.msg);
    work->sum += *(unsigned char *)value;
}

static void run_encode_pb(struct work *work)
{
    dv_buf_clear(&work->buf);
    dv_encode_pb(work->message, work->object->value, &work->buf);
    work->sum += work->buf.n;
}

static void run_copy(struct work *work)
{
    dv_object_unref(dv_object_new(work->kind, work->object->value));
}

static void run_equal(struct work *work)
{
    work->sum += dv_message_eq(work->message, work->object->value, work->object->value);
}

static double measure(void (*run)(struct work *work), struct work *work)
{
    size_t calls = dv_size_max(1, 2000000 / dv_size_max(1, work->json.n));
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < RUNS; i++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        uint64_t took;

        for (size_t j = 0; j < calls; j++) {
            dv_arena_reset(work->arena);
            run(work);
        }
        took = (dv_clock_now_ns(dv_clock_real()) - start) / calls;
        best = took < best ? took : best;
    }
    return (double)best;
}

static void slice(struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"metadata\":{\"name\":\"node-1-gpu.example.com-x7k2p\",\"uid\":"
                      "\"8fa6f876-0000-4000-8000-000036200e42\",\"resourceVersion\":\"123456\","
                      "\"generation\":1,\"creationTimestamp\":\"2024-01-01T00:00:00Z\"},\"spec\":"
                      "{\"driver\":\"gpu.example.com\",\"pool\":{\"name\":\"node-1\","
                      "\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":\"node-1\","
                      "\"devices\":[");
    for (int i = 0; i < N_DEVICES; i++)
        dv_buf_printf(
            buf,
            "%s{\"name\":\"gpu-%d\",\"attributes\":{\"driverVersion\":{\"version\":"
            "\"1.2.3\"},\"index\":{\"int\":%d},\"model\":{\"string\":\"A9 of the example\""
            "},\"numa\":{\"int\":%d},\"resource.kubernetes.io/pciBusID\":{\"string\":"
            "\"0000:%02x:00.0\"},\"uuid\":{\"string\":\"gpu-18db0e85-99e9-c746-8531-%012x"
            "\"}},\"capacity\":{\"cores\":{\"value\":\"96\"},\"memory\":{\"value\":"
            "\"40Gi\"}}}",
            i ? "," : "", i, i, i / 64, (unsigned)i, (unsigned)i);
    dv_buf_add_c(buf, "]}}");
}

static void claim(struct dv_buf *buf)
{
    dv_buf_add_c(
        buf,
        "{\"metadata\":{\"name\":\"pod-1-gpu-x7k2p\",\"generateName\":\"pod-1-gpu-\","
        "\"namespace\":\"team-a\",\"uid\":\"8fa6f876-0000-4000-8000-000036200e42\","
        "\"resourceVersion\":\"123456\",\"creationTimestamp\":\"2024-01-01T00:00:00Z\","
        "\"annotations\":{\"resource.kubernetes.io/pod-claim-name\":\"gpu\"},\"ownerReferences\":"
        "[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"pod-1\",\"uid\":"
        "\"08bcb57f-0000-4000-8000-0000663844f4\",\"controller\":true,\"blockOwnerDeletion\":true}]"
        ",\"finalizers\":[\"resource.kubernetes.io/delete-protection\"]},\"spec\":{\"devices\":"
        "{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\","
        "\"allocationMode\":\"ExactCount\",\"count\":1}}]}},\"status\":{\"allocation\":"
        "{\"devices\":{\"results\":[{\"request\":\"gpu\",\"driver\":\"gpu.example.com\",\"pool\":"
        "\"node-1\",\"device\":\"gpu-0\"}]},\"nodeSelector\":{\"nodeSelectorTerms\":"
        "[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"node-1\"]}"
        "]}]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"pod-1\",\"uid\":"
        "\"08bcb57f-0000-4000-8000-0000663844f4\"}]}}");
}

static void pod(struct dv_buf *buf)
{
    dv_buf_add_c(
        buf,
        "{\"metadata\":{\"name\":\"pod-1\",\"namespace\":\"team-a\",\"uid\":"
        "\"08bcb57f-0000-4000-8000-0000663844f4\",\"resourceVersion\":\"123456\",\"generation\":1,"
        "\"creationTimestamp\":\"2024-01-01T00:00:00Z\",\"labels\":{\"app\":\"train\","
        "\"team\":\"a\"}},\"spec\":{\"volumes\":[{\"name\":\"token\",\"projected\":{\"sources\":"
        "[{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}}],"
        "\"defaultMode\":420}}],\"containers\":[{\"name\":\"main\",\"image\":"
        "\"registry.example/train:1\",\"command\":[\"train\",\"--all\"],\"env\":[{\"name\":\"A\","
        "\"value\":\"b\"}],\"resources\":{\"limits\":{\"cpu\":\"4\",\"memory\":\"8Gi\"},"
        "\"requests\":{\"cpu\":\"4\",\"memory\":\"8Gi\"},\"claims\":[{\"name\":\"gpu\"}]},"
        "\"volumeMounts\":[{\"name\":\"token\",\"readOnly\":true,\"mountPath\":\"/token\"}],"
        "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","
        "\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":\"Always\","
        "\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\",\"nodeName\":"
        "\"node-1\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
        "\"enableServiceLinks\":true,\"resourceClaims\":[{\"name\":\"gpu\","
        "\"resourceClaimTemplateName\":\"gpu\"}]},\"status\":{\"phase\":\"Running\",\"conditions\":"
        "[{\"type\":\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"
        "\"2024-01-01T00:00:05Z\"},{\"type\":\"PodScheduled\",\"status\":\"True\","
        "\"lastProbeTime\":null,\"lastTransitionTime\":\"2024-01-01T00:00:01Z\"}],\"podIP\":"
        "\"10.0.0.1\",\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"startTime\":\"2024-01-01T00:00:01Z\","
        "\"qosClass\":\"Guaranteed\",\"resourceClaimStatuses\":[{\"name\":\"gpu\","
        "\"resourceClaimName\":\"pod-1-gpu-x7k2p\"}]}}");
}

static void bench(const char *what, enum dv_kind_id kind, void (*make)(struct dv_buf *buf))
{
    static const struct {
        const char *what;
        void (*run)(struct work *work);
        bool is_pb;
    } runs[] = {
        {"parse JSON alone",  run_parse,     false},
        {"read JSON",         run_decode,    false},
        {"write JSON",        run_encode,    false},
        {"make a document",   run_document,  false},
        {"read protobuf",     run_decode_pb, true },
        {"write protobuf",    run_encode_pb, true },
        {"copy as an object", run_copy,      false},
        {"compare",           run_equal,     false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *kept = dv_arena_new();
    struct work work = {.kind = dv_kind(kind), .arena = dv_arena_new()};

    work.message = work.kind->versions[0].message;
    dv_buf_init(&work.buf, TEXT_BYTES_MAX);
    make(&work.buf);
    work.json = dv_str_copy(dv_buf_str(&work.buf), kept);
    work.object = dv_object_new(work.kind, decode(&work));
    run_encode_pb(&work);
    work.pb = dv_str_copy(dv_buf_str(&work.buf), kept);
    printf("%s: %zu bytes of JSON, %zu of protobuf, an object of %zu\n", what, work.json.n,
           work.pb.n, (size_t)work.object->size_bytes);
    for (size_t i = 0; i < DV_COUNT(runs); i++) {
        double ns = measure(runs[i].run, &work);

        printf("  %-18s %9.0f ns  %6.0f MB/s\n", runs[i].what, ns,
               (double)(runs[i].is_pb ? work.pb.n : work.json.n) * 1000 / ns);
    }
    dv_object_unref(work.object);
    dv_buf_fini(&work.buf);
    dv_arena_free(work.arena);
}

int main(void)
{
    bench("slice", DV_KIND_SLICE, slice);
    bench("claim", DV_KIND_CLAIM, claim);
    bench("pod", DV_KIND_POD, pod);
    return 0;
}
