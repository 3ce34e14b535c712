/* sim_objects.c - the shapes of simulated pods, and the texts of the objects of a simulation. */
#include "cli/explain/sim_objects.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/explain/simulate.h"

#define SLICE_DEVICES_MAX 128u
#define TEXT_BYTES_MAX (1u << 20)

static const struct {
    const char *name;
    const char *devices; /* of the claim's spec; NULL: no claim */
} shapes[] = {
    [DV_SIM_TEMPLATE] = {"template",
                         "{\"requests\":[{\"name\":\"d\",\"exactly\":{\"deviceClassName\":"
                         "\"sim\"}}]}"                                                               },
    [DV_SIM_SHARED] = {"shared",   "{\"requests\":[{\"name\":\"d\",\"exactly\":{"
                                 "\"deviceClassName\":\"sim\"}}]}" },
    [DV_SIM_CEL] = {"cel",      "{\"requests\":[{\"name\":\"d\",\"exactly\":{\"deviceClassName\":"
                           "\"sim\",\"selectors\":[{\"cel\":{\"expression\":\"device.attributes["
                           "'sim.example'].model == 'm' && device.capacity['sim.example'].memory."
                           "compareTo(quantity('40Gi')) >= 0\"}}]}}]}"},
    [DV_SIM_MATCH] = {"match",
                         "{\"requests\":[{\"name\":\"d\",\"exactly\":{\"deviceClassName\":\"sim\","
                      "\"count\":2}}],\"constraints\":[{\"matchAttribute\":\"sim.example/group\"}"
                      "]}"                                                                           },
    [DV_SIM_NONE] = {"none",     NULL                                                            },
};

const char *dv_sim_shape_name(enum dv_sim_shape shape)
{
    return shapes[shape].name;
}

bool dv_sim_shape_find(dv_str name, enum dv_sim_shape *shape)
{
    for (enum dv_sim_shape i = 0; i < DV_N_SIM_SHAPES; i++)
        if (dv_str_eq(name, dv_str_from_c(shapes[i].name))) {
            *shape = i;
            return true;
        }
    return false;
}

/* ---- objects ---- */

dv_str dv_sim_class(void)
{
    return DV_STR("{\"metadata\":{\"name\":\"sim\"},\"spec\":{\"selectors\":[{\"cel\":{"
                  "\"expression\":\"device.driver == 'sim.example'\"}}]}}");
}

dv_str dv_sim_template(enum dv_sim_shape shape, struct dv_arena *arena)
{
    return dv_str_printf(arena,
                         "{\"metadata\":{\"name\":\"sim\"},\"spec\":{\"spec\":{\"devices\":%s}}}",
                         shapes[shape].devices ? shapes[shape].devices : "{}");
}

dv_str dv_sim_node(size_t i, struct dv_arena *arena)
{
    return dv_str_printf(arena,
                         "{\"metadata\":{\"name\":\"node-%zu\"},\"status\":{\"allocatable\":{"
                         "\"cpu\":\"64\",\"memory\":\"512Gi\",\"pods\":\"1000\"}}}",
                         i);
}

size_t dv_sim_slices_a_node(size_t n_devices)
{
    return (n_devices + SLICE_DEVICES_MAX - 1) / SLICE_DEVICES_MAX;
}

dv_str dv_sim_slice(size_t n_devices, size_t i, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t n_slices = dv_sim_slices_a_node(n_devices);
    size_t node = i / n_slices;
    size_t first = i % n_slices * SLICE_DEVICES_MAX;
    size_t end = dv_size_min(first + SLICE_DEVICES_MAX, n_devices);

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_printf(&buf,
                  "{\"metadata\":{\"name\":\"slice-%zu\"},\"spec\":{\"driver\":\"sim.example\","
                  "\"nodeName\":\"node-%zu\",\"pool\":{\"name\":\"node-%zu\",\"generation\":1,"
                  "\"resourceSliceCount\":%zu},\"devices\":[",
                  i, node, node, n_slices);
    for (size_t d = first; d < end; d++)
        dv_buf_printf(&buf,
                      "%s{\"name\":\"d-%zu\",\"attributes\":{\"model\":{\"string\":\"m\"},"
                      "\"group\":{\"int\":%zu}},\"capacity\":{\"memory\":{\"value\":\"80Gi\"}}}",
                      d > first ? "," : "", d, d / 2);
    dv_buf_add_c(&buf, "]}}");
    return dv_str_copy(dv_buf_str(&buf), arena);
}

dv_str dv_sim_shared_claim(size_t i, struct dv_arena *arena)
{
    return dv_str_printf(arena,
                         "{\"metadata\":{\"name\":\"shared-%zu\"},\"spec\":{\"devices\":%s}}", i,
                         shapes[DV_SIM_SHARED].devices);
}

dv_str dv_sim_pod(enum dv_sim_shape shape, size_t i, struct dv_arena *arena)
{
    dv_str source = DV_STR("\"resourceClaimTemplateName\":\"sim\"");

    if (!shapes[shape].devices)
        return dv_str_printf(arena,
                             "{\"metadata\":{\"name\":\"pod-%zu\"},\"spec\":{\"containers\":"
                             "[{\"name\":\"c\",\"image\":\"i\"}]}}",
                             i);
    if (shape == DV_SIM_SHARED)
        source =
            dv_str_printf(arena, "\"resourceClaimName\":\"shared-%zu\"", i / DV_SIM_PODS_A_CLAIM);
    return dv_str_printf(arena,
                         "{\"metadata\":{\"name\":\"pod-%zu\"},\"spec\":{\"containers\":"
                         "[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"claims\":[{"
                         "\"name\":\"d\"}]}}],\"resourceClaims\":[{\"name\":\"d\",%.*s}"
                         "]}}",
                         i, DV_FMT(source));
}
