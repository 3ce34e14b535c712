/* bench_oci.c - what it costs to inject devices into the config of a container, as large as
 * runtimes write them: 40 variables, 20 mounts, and some. */
#include "oci/oci.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "json/json.h"

#define CONFIG_BYTES_MAX 65536u
#define DEVICES 16u
/* The best of some runs counts: the rest is other programs. */
#define RUNS 7
#define APPLIES 2000u

static void must(bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "bench_oci: %s\n", err->msg);
    exit(1);
}

static bool look(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                 struct dv_err *err)
{
    (void)host;
    (void)path;
    (void)err;
    *node = (struct dv_oci_node){DV_CDI_NODE_CHAR, 195, 255};
    return true;
}

static struct dv_json *make_config(struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_json *config;
    struct dv_err err;

    dv_buf_init(&buf, CONFIG_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"ociVersion\":\"1.0.2\",\"process\":{\"env\":[\"A=1\"");
    for (unsigned i = 0; i < 40; i++)
        dv_buf_printf(&buf, ",\"VARIABLE_%u=value\"", i);
    dv_buf_add_c(&buf, "]},\"mounts\":[{\"destination\":\"/proc\"}");
    for (unsigned i = 0; i < 20; i++)
        dv_buf_printf(&buf, ",{\"destination\":\"/mnt/%u\",\"options\":[\"bind\"]}", i);
    dv_buf_add_c(&buf, "],\"linux\":{\"resources\":{\"devices\":[{\"allow\":false}]}}}");
    config = dv_json_parse(dv_str_copy(dv_buf_str(&buf), arena), NULL, arena, &err);
    must(config != NULL, &err);
    return config;
}

static struct dv_cdi_index *make_index(void)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_cdi_file file = {.path = DV_STR("/etc/cdi/vendor.json")};
    struct dv_cdi_index *index;
    struct dv_cdi_spec *spec;

    dv_buf_init(&buf, CONFIG_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"cdiVersion\":\"0.6.0\",\"kind\":\"v.com/c\",\"devices\":[");
    for (unsigned i = 0; i < DEVICES; i++)
        dv_buf_printf(&buf,
                      "%s{\"name\":\"%u\",\"containerEdits\":{\"env\":[\"GPU%u=1\"],"
                      "\"deviceNodes\":[{\"path\":\"/dev/gpu%u\"},{\"path\":\"/dev/gpuctl\"}],"
                      "\"mounts\":[{\"hostPath\":\"/lib/%u\",\"containerPath\":\"/lib/%u\"}],"
                      "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/hook\"}]}}",
                      i ? "," : "", i, i, i, i, i);
    dv_buf_add_c(&buf, "]}");
    file.text = dv_buf_str(&buf);
    spec = dv_cdi_spec_new(&file);
    assert(spec->n_problems == 0);
    index = dv_cdi_index_new(&spec, 1);
    dv_cdi_spec_unref(spec);
    return index;
}

static double bench_apply(const struct dv_cdi_index *index, size_t n_names)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *keep = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_oci_host host = {look};
    struct dv_json *config = make_config(keep);
    struct dv_cdi_edits edits;
    struct dv_err err;
    dv_str names[DEVICES];
    double best = 0;

    for (size_t i = 0; i < n_names; i++)
        names[i] = dv_str_printf(keep, "v.com/c=%zu", i);
    must(dv_cdi_resolve(index, names, n_names, keep, &edits, &err), &err);
    for (int run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        double took;

        for (unsigned i = 0; i < APPLIES; i++) {
            must(dv_oci_apply(config, &edits, &host, arena, &err) != NULL, &err);
            dv_arena_reset(arena);
        }
        took = (double)(dv_clock_now_ns(dv_clock_real()) - start) / APPLIES;
        if (run == 0 || took < best)
            best = took;
    }
    return best;
}

int main(void)
{
    static const size_t counts[] = {1, 4, DEVICES};
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = make_index();

    for (size_t i = 0; i < DV_COUNT(counts); i++)
        printf("apply %2zu devices: %8.1f us\n", counts[i], bench_apply(index, counts[i]) / 1000);
    return 0;
}
