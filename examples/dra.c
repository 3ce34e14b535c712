/* dra.c - a DRA driver in some 150 lines: device nodes of this host, by name, each for one claim.
 *
 *     cc dra.c $(pkg-config --cflags --libs davit-driver) -o dra
 *     NODE_NAME=here KUBECONFIG=/run/serial.kubeconfig ./dra serial.example.com ttyS0 ttyS1
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <davit/cdi.h>
#include <davit/dra.h>

#define DEVICES_MAX 64

struct state {
    struct davit_driver *driver;
    const char *name;             /* of the driver */
    const char *cdi_dir;          /* NULL: where all runtimes look */
    char labels[DEVICES_MAX][64]; /* what the devices are called: names have no capitals */
    char *const *nodes;           /* below /dev */
    size_t n;
};

static const char *node_of(const struct state *state, const char *label)
{
    for (size_t i = 0; i < state->n; i++)
        if (strcmp(state->labels[i], label) == 0)
            return state->nodes[i];
    return label;
}

static const char *kind_of(const struct state *state)
{
    static char kind[256];

    (void)snprintf(kind, sizeof(kind), "%s/claim", state->name);
    return kind;
}

/* One spec a claim, one device in it for each device of ours that the claim has. */
static void prepare(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim)
{
    const struct state *state = ctx;
    char paths[DEVICES_MAX][64], names[DEVICES_MAX][128], texts[DEVICES_MAX][DAVIT_CDI_NAME_BYTES];
    struct davit_cdi_node nodes[DEVICES_MAX] = {{0}};
    struct davit_cdi_device devices[DEVICES_MAX] = {{0}};
    struct davit_cdi_spec spec = {
        .dir = state->cdi_dir, .kind = kind_of(state), .id = claim->ref.uid, .devices = devices};
    struct davit_error error;

    for (size_t i = 0; i < claim->n_results && i < DEVICES_MAX; i++) {
        const struct davit_dra_result *result = &claim->results[i];
        const char *cdi = texts[i];

        (void)snprintf(paths[i], sizeof(paths[i]), "/dev/%s", node_of(state, result->device));
        (void)snprintf(names[i], sizeof(names[i]), "%s-%zu", claim->ref.uid, i);
        nodes[i] = (struct davit_cdi_node){.path = paths[i], .permissions = "rw"};
        devices[i] = (struct davit_cdi_device){.name = names[i], .nodes = &nodes[i], .n_nodes = 1};
        spec.n_devices++;
        (void)davit_cdi_name(spec.kind, names[i], texts[i], sizeof(texts[i]));
        davit_dra_add_device(call, &(struct davit_dra_prepared){.requests = &result->request,
                                                                .n_requests = 1,
                                                                .pool = result->pool,
                                                                .device = result->device,
                                                                .cdi = &cdi,
                                                                .n_cdi = 1});
    }
    if (davit_cdi_write(&spec, &error))
        davit_call_finish(call);
    else
        davit_call_fail(call, error.code, "%s", error.message);
}

/* Also of a claim that was never prepared: what is not there is removed. */
static void unprepare(void *ctx, struct davit_call *call, const struct davit_dra_claim_ref *claim)
{
    const struct state *state = ctx;
    struct davit_error error;

    if (davit_cdi_remove(state->cdi_dir, kind_of(state), claim->uid, &error))
        davit_call_finish(call);
    else
        davit_call_fail(call, error.code, "%s", error.message);
}

static void event(void *ctx, const struct davit_dra_event *event)
{
    (void)ctx;
    if (event->kind == DAVIT_DRA_REGISTERED)
        (void)puts("registered");
    else if (event->kind == DAVIT_DRA_PROBLEM)
        (void)fprintf(stderr, "dra: %s\n", event->error.message);
    (void)fflush(stdout);
}

static void stop(void *ctx, int signum)
{
    struct state *state = ctx;

    (void)signum;
    davit_driver_stop(state->driver);
}

int main(int argc, char **argv)
{
    struct davit_dra_device devices[DEVICES_MAX] = {{0}};
    struct davit_dra_pool pool = {.name = getenv("NODE_NAME"), .devices = devices};
    struct state state = {
        .name = argc > 2 ? argv[1] : NULL, .cdi_dir = getenv("CDI_DIR"), .nodes = argv + 2};
    struct davit_dra_options options = {.driver = state.name,
                                        .node = getenv("NODE_NAME"),
                                        .kubeconfig = getenv("KUBECONFIG"),
                                        .plugin_dir = getenv("PLUGIN_DIR"),
                                        .registry_dir = getenv("REGISTRY_DIR"),
                                        .ctx = &state,
                                        .prepare = prepare,
                                        .unprepare = unprepare,
                                        .event = event};
    struct davit_error error;
    struct davit_dra *dra = NULL;
    bool is_good;

    if (!state.name || !options.node) {
        (void)fprintf(stderr, "usage: NODE_NAME=NODE %s DRIVER NAME-IN-DEV...\n", argv[0]);
        return 2;
    }
    for (; state.n < (size_t)argc - 2 && state.n < DEVICES_MAX; state.n++) {
        for (size_t i = 0; state.nodes[state.n][i] && i < sizeof(state.labels[0]) - 1; i++)
            state.labels[state.n][i] = (char)tolower((unsigned char)state.nodes[state.n][i]);
        devices[pool.n_devices++].name = state.labels[state.n];
    }
    state.driver = davit_driver_new(&error);
    is_good = state.driver && davit_driver_on_signal(state.driver, SIGTERM, stop, &state, &error);
    if (is_good)
        dra = davit_dra_open(state.driver, &options, &error);
    is_good = dra && davit_dra_publish(dra, &pool, 1, &error);
    if (is_good)
        davit_driver_run(state.driver);
    else
        (void)fprintf(stderr, "dra: %s\n", error.message);
    davit_dra_close(dra);
    davit_driver_free(state.driver);
    return is_good ? 0 : 1;
}
