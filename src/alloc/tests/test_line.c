/* test_line.c - worlds at random, as the lines that world_open reads. */
#include "alloc/tests/test_alloc_world.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"

#define LINE_BYTES_MAX (1u << 20)

unsigned choose(struct choices *choices, unsigned n)
{
    if (n == 0)
        return 0;
    if (choices->size > 0) {
        choices->size--;
        return *choices->data++ % n;
    }
    if (choices->seed == 0)
        return 0;
    choices->seed = choices->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(choices->seed >> 33) % n;
}

/* What is being written; the profile keeps a world to a few features, so that it is not all
 * errors. */
struct line {
    struct choices *choices;
    struct dv_buf buf;
    unsigned profile;
    unsigned odd; /* one in this many things is odd */
    unsigned n_devices;
};

static unsigned pick(struct line *line, unsigned n)
{
    return choose(line->choices, n);
}

static bool is_odd(struct line *line)
{
    return line->odd > 0 && pick(line, line->odd) == 1;
}

enum profile {
    WITH_COUNTERS = 1,
    WITH_CAPACITY = 2,
    WITH_TAINTS = 4,
    WITH_LISTS = 8,
    WITH_CONSTRAINTS = 16,
    WITH_ALTERNATIVES = 32,
    WITH_ALL = 64,
    WITH_ADMIN = 128,
    WITH_NODES = 256,
    WITH_TWINS = 512,
};

static bool with(const struct line *line, enum profile profile)
{
    return (line->profile & profile) != 0;
}

static void add(struct line *line, const char *text)
{
    dv_buf_add_c(&line->buf, text);
}

static void put_number(struct line *line, const char *before, unsigned number, const char *after)
{
    dv_buf_printf(&line->buf, "%s%u%s", before, number, after);
}

static const char *comma(size_t i)
{
    return i ? "," : "";
}

/* ---- devices ---- */

static void put_attributes(struct line *line)
{
    static const char *const kinds[] = {"int", "string", "bool", "version"};
    static const char *const values[][3] = {
        {"1",         "2",         "3"        },
        {"\"x\"",     "\"y\"",     "\"z\""    },
        {"true",      "false",     "true"     },
        {"\"1.0.0\"", "\"2.0.0\"", "\"3.0.0\""},
    };
    static const char *const lists[] = {"ints", "strings", "bools", "versions"};
    unsigned n_values = with(line, WITH_TWINS) ? 2 : 3;

    add(line, "\"attributes\":{");
    put_number(line, "\"kind\":{\"string\":\"k", pick(line, 2), "\"}");
    for (unsigned i = 0; i < 2; i++) {
        unsigned kind = is_odd(line) ? pick(line, 4) : i;

        if (is_odd(line))
            continue;
        dv_buf_printf(&line->buf, ",\"%s%u\":{", is_odd(line) ? "driver-a/a" : "a", i);
        if (is_odd(line) && !with(line, WITH_LISTS))
            ; /* no value */
        else if (with(line, WITH_LISTS) && pick(line, 2))
            dv_buf_printf(&line->buf, "\"%s\":[%s,%s]", lists[kind], values[kind][pick(line, 3)],
                          values[kind][pick(line, 3)]);
        else
            dv_buf_printf(&line->buf, "\"%s\":%s", kinds[kind], values[kind][pick(line, n_values)]);
        add(line, "}");
    }
    add(line, "}");
}

static void put_policy(struct line *line)
{
    static const char *const policies[] = {
        "",
        ",\"requestPolicy\":{\"default\":\"1\"}",
        ",\"requestPolicy\":{\"default\":\"1\",\"validRange\":{\"min\":\"1\",\"max\":\"4\"}}",
        ",\"requestPolicy\":{\"default\":\"1\",\"validRange\":{\"min\":\"1\",\"step\":\"2\"}}",
        ",\"requestPolicy\":{\"default\":\"2\",\"validValues\":[\"2\",\"4\"]}",
        ",\"requestPolicy\":{\"default\":\"0\",\"validValues\":[\"0\",\"3\"]}",
    };

    add(line, policies[pick(line, DV_COUNT(policies))]);
}

static void put_capacity(struct line *line)
{
    static const char *const amounts[] = {"4", "2", "8", "1500m"};

    add(line, ",\"capacity\":{");
    for (unsigned i = 0; i < 1 + pick(line, 2); i++) {
        dv_buf_printf(&line->buf, "%s\"c%u\":{\"value\":\"%s\"", comma(i), i,
                      amounts[pick(line, DV_COUNT(amounts))]);
        put_policy(line);
        add(line, "}");
    }
    add(line, "}");
}

static void put_taints(struct line *line)
{
    static const char *const effects[] = {"NoSchedule", "NoExecute", "None"};

    dv_buf_printf(&line->buf, ",\"taints\":[{\"key\":\"t%u\",\"value\":\"v%u\",\"effect\":\"%s\"}]",
                  pick(line, 2), pick(line, 2), effects[pick(line, 3)]);
}

static void put_consumption(struct line *line)
{
    add(line, ",\"consumesCounters\":[{\"counterSet\":");
    add(line, is_odd(line) ? "\"none\"" : "\"set\"");
    add(line, ",\"counters\":{");
    dv_buf_printf(&line->buf, "\"m\":{\"value\":\"%s%u\"}", is_odd(line) ? "-" : "", pick(line, 4));
    if (pick(line, 2))
        dv_buf_printf(&line->buf, ",\"%s\":{\"value\":\"1\"}", is_odd(line) ? "z" : "n");
    add(line, "}}]");
}

static void put_selection(struct line *line)
{
    switch (pick(line, 6)) {
    case 0:
        add(line, ",\"nodeName\":\"node-2\"");
        break;
    case 1:
        add(line, ",\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":"
                  "\"region\",\"operator\":\"In\",\"values\":[\"r1\"]}]}]}");
        break;
    case 2:
        dv_buf_printf(&line->buf,
                      ",\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":"
                      "\"%s\",\"operator\":\"%s\"}]}]}",
                      pick(line, 2) ? "region" : "zone", is_odd(line) ? "Odd" : "Exists");
        break;
    case 3:
        add(line, ",\"allNodes\":true");
        break;
    default:
        add(line, ",\"nodeName\":\"node-1\"");
        break;
    }
}

static void put_device(struct line *line, unsigned i, bool has_counters, bool has_selection)
{
    if (is_odd(line))
        i = 0;
    put_number(line, "{\"name\":\"dev-", i, "\",");
    put_attributes(line);
    if (with(line, WITH_CAPACITY) && pick(line, 4))
        put_capacity(line);
    if (with(line, WITH_CAPACITY) && pick(line, 2))
        add(line, ",\"allowMultipleAllocations\":true");
    if (with(line, WITH_TAINTS) && pick(line, 3) == 0)
        put_taints(line);
    if (has_counters && pick(line, 4))
        put_consumption(line);
    if (has_selection)
        put_selection(line);
    if (is_odd(line))
        add(line, ",\"bindingConditions\":[\"bound\"],\"bindingFailureConditions\":[\"failed\"]");
    if (is_odd(line))
        add(line, ",\"bindsToNode\":true");
    add(line, "}");
}

/* ---- slices ---- */

struct pool {
    unsigned number;
    unsigned generation;
    unsigned n_slices;
    bool has_counters;
};

static void begin_slice(struct line *line, const struct pool *pool, unsigned nth)
{
    dv_buf_printf(&line->buf,
                  "%s{\"metadata\":{\"name\":\"slice-%u-%u\"},\"spec\":{\"driver\":\"driver-%s\","
                  "\"pool\":{\"name\":\"pool-%u\",\"generation\":%u,\"resourceSliceCount\":%u}",
                  comma(pool->number + nth), pool->number, pick(line, 2) ? nth : 9 - nth,
                  pool->number == 2 ? "b" : "a", pool->number,
                  is_odd(line) ? pool->generation + 1 : pool->generation,
                  is_odd(line) ? pool->n_slices + 1 : pool->n_slices);
}

static void put_pool(struct line *line, unsigned number)
{
    struct pool pool = {
        .number = number,
        .generation = 1,
        .has_counters = with(line, WITH_COUNTERS) && pick(line, 3),
        .n_slices = 1 + pick(line, 2),
    };
    unsigned nth = 0;

    if (pool.has_counters)
        pool.n_slices++;
    for (unsigned i = 0; i + pool.has_counters < pool.n_slices; i++) {
        bool per_device = with(line, WITH_NODES) && pick(line, 4) == 0;
        unsigned n_devices = 1 + pick(line, with(line, WITH_TWINS) ? 6 : 4);

        begin_slice(line, &pool, nth++);
        if (per_device)
            add(line, ",\"perDeviceNodeSelection\":true");
        else if (with(line, WITH_NODES))
            put_selection(line);
        else
            add(line, pick(line, 4) ? ",\"nodeName\":\"node-1\"" : ",\"allNodes\":true");
        add(line, ",\"devices\":[");
        for (unsigned j = 0; j < n_devices; j++) {
            add(line, comma(j));
            put_device(line, line->n_devices++, pool.has_counters, per_device);
        }
        add(line, "]}}");
    }
    if (!pool.has_counters)
        return;
    begin_slice(line, &pool, nth);
    add(line, ",\"nodeName\":\"node-1\",\"sharedCounters\":[{\"name\":\"set\",\"counters\":{");
    put_number(line, "\"m\":{\"value\":\"", pick(line, 8), "\"},");
    put_number(line, "\"n\":{\"value\":\"", pick(line, 4), "\"}}}]}}");
}

/* ---- claims ---- */

static void put_selectors(struct line *line)
{
    static const char *const selectors[] = {
        "device.driver == 'driver-a'",
        "device.attributes['driver-a'].kind == 'k0'",
        "device.attributes[device.driver].kind == 'k1'",
        "has(device.attributes['driver-a'].a0)",
        "device.attributes['driver-a'].a0 == 1",
        "device.attributes['driver-a'].a1 != 'x'",
    };

    add(line, "\"selectors\":[");
    if (pick(line, 2))
        dv_buf_printf(&line->buf, "{\"cel\":{\"expression\":\"%s\"}}",
                      is_odd(line) ? "device.nothing" : selectors[pick(line, DV_COUNT(selectors))]);
    add(line, "]");
}

static void put_terms(struct line *line, bool is_exact)
{
    static const char *const operators[] = {"Exists", "Equal"};

    put_number(line, "\"deviceClassName\":\"class-", is_odd(line) ? 7 : pick(line, 3), "\",");
    put_selectors(line);
    if (with(line, WITH_ALL) && pick(line, 3) == 0)
        add(line, ",\"allocationMode\":\"All\"");
    else
        put_number(line, ",\"allocationMode\":\"ExactCount\",\"count\":",
                   is_odd(line) ? pick(line, 40) : 1 + pick(line, 4), "");
    if (with(line, WITH_TAINTS) && pick(line, 2))
        dv_buf_printf(&line->buf,
                      ",\"tolerations\":[{\"key\":\"t%u\",\"operator\":\"%s\",\"value\":\"v1\"}]",
                      pick(line, 2), operators[pick(line, 2)]);
    if (with(line, WITH_CAPACITY) && pick(line, 2))
        dv_buf_printf(&line->buf, ",\"capacity\":{\"requests\":{\"c%u\":\"%u\"}}",
                      is_odd(line) ? 2 : pick(line, 2), pick(line, 5));
    if (is_exact && with(line, WITH_ADMIN) && pick(line, 2))
        add(line, ",\"adminAccess\":true");
}

static void put_request(struct line *line, unsigned i, bool *has_alternatives)
{
    put_number(line, "{\"name\":\"r", i, "\",");
    *has_alternatives = with(line, WITH_ALTERNATIVES) && pick(line, 2);
    if (*has_alternatives) {
        add(line, "\"firstAvailable\":[");
        for (unsigned j = 0; j < 1 + pick(line, 3); j++) {
            dv_buf_printf(&line->buf, "%s{\"name\":\"s%u\",", comma(j), j);
            put_terms(line, false);
            add(line, "}");
        }
        add(line, "]}");
        return;
    }
    add(line, "\"exactly\":{");
    put_terms(line, true);
    add(line, "}}");
}

static void put_constraint(struct line *line, unsigned n_requests)
{
    static const char *const attributes[] = {"driver-a/a0", "driver-a/a1", "driver-b/a0"};

    dv_buf_printf(&line->buf, "{\"%s\":\"%s\",\"requests\":[",
                  pick(line, 2) ? "matchAttribute" : "distinctAttribute",
                  attributes[is_odd(line) ? 2 : pick(line, 2)]);
    if (pick(line, 2))
        dv_buf_printf(&line->buf, "\"r%u%s\"", pick(line, n_requests), is_odd(line) ? "/s0" : "");
    add(line, "]}");
}

static void put_claim(struct line *line, unsigned i)
{
    unsigned n_requests = 1 + pick(line, 3);
    bool has_alternatives;

    put_number(line, "{\"metadata\":{\"namespace\":\"default\",\"name\":\"claim-", i,
               "\"},\"spec\":{\"devices\":{\"requests\":[");
    for (unsigned j = 0; j < n_requests; j++) {
        add(line, comma(j));
        put_request(line, j, &has_alternatives);
    }
    add(line, "],\"constraints\":[");
    for (unsigned j = 0; with(line, WITH_CONSTRAINTS) && j < 1 + pick(line, 2); j++) {
        add(line, comma(j));
        put_constraint(line, n_requests);
    }
    add(line, "]}}}");
}

static void put_classes(struct line *line)
{
    add(line, "\"deviceClasses\":[");
    for (unsigned i = 0; i < 3; i++) {
        dv_buf_printf(&line->buf, "%s{\"metadata\":{\"name\":\"class-%u\"},\"spec\":{", comma(i),
                      i);
        if (i > 0)
            put_selectors(line);
        add(line, "}}");
    }
    add(line, "],");
}

static void put_device_id(struct line *line, size_t i)
{
    unsigned pool = pick(line, 3);

    dv_buf_printf(&line->buf,
                  "%s{\"driver\":\"driver-%s\",\"pool\":\"pool-%u\",\"device\":\"dev-%u\"",
                  comma(i), pool == 2 ? "b" : "a", pool, pick(line, line->n_devices + 1));
}

static void put_state(struct line *line)
{
    add(line, "\"state\":{\"allocatedDevices\":[");
    for (unsigned i = 0; i < pick(line, 4); i++) {
        put_device_id(line, i);
        add(line, "}");
    }
    add(line, "],\"allocatedSharedDevices\":[");
    for (unsigned i = 0; with(line, WITH_CAPACITY) && i < pick(line, 3); i++) {
        put_device_id(line, i);
        put_number(line, ",\"shareID\":\"s", i, "\"}");
    }
    add(line, "],\"consumedCapacity\":[");
    for (unsigned i = 0; with(line, WITH_CAPACITY) && i < pick(line, 3); i++) {
        put_device_id(line, i);
        put_number(line, ",\"capacity\":{\"c0\":\"", pick(line, 4), "\"}}");
    }
    add(line, "]}");
}

static void put_features(struct line *line)
{
    static const char *const names[] = {
        "adminAccess",  "consumableCapacity",   "deviceBindingAndStatus",
        "deviceTaints", "partitionableDevices", "prioritizedList",
    };

    dv_buf_printf(&line->buf, "\"features\":{\"listTypeAttributes\":%s",
                  with(line, WITH_LISTS) ? "true" : "false");
    for (size_t i = 0; i < DV_COUNT(names); i++)
        dv_buf_printf(&line->buf, ",\"%s\":%s", names[i], is_odd(line) ? "false" : "true");
    add(line, "},");
}

dv_str world_line(struct choices *choices, struct dv_arena *arena)
{
    static const unsigned odds[] = {0, 60, 20, 200};
    struct line line = {.choices = choices};
    dv_str text;

    dv_buf_init(&line.buf, LINE_BYTES_MAX);
    line.profile = pick(&line, 256);
    line.profile &= pick(&line, 256); /* fewer of them at once */
    line.profile |= pick(&line, 4) << 8;
    line.odd = odds[pick(&line, DV_COUNT(odds))];
    add(&line, "{\"node\":{\"metadata\":{\"name\":\"node-1\",\"labels\":{\"region\":\"r1\"}}},");
    put_features(&line);
    put_classes(&line);
    add(&line, "\"resourceSlices\":[");
    for (unsigned i = 0; i < 3; i++)
        if (i == 0 || pick(&line, 2))
            put_pool(&line, i);
    add(&line, "],\"claims\":[");
    for (unsigned i = 0; i < 1 + pick(&line, 2); i++) {
        add(&line, comma(i));
        put_claim(&line, i);
    }
    add(&line, "],");
    put_state(&line);
    add(&line, "}");
    text = dv_str_copy(dv_buf_str(&line.buf), arena);
    dv_buf_fini(&line.buf);
    return text;
}
