#include "verify/runner/case_needs.h"

#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/runner/selection.h"
#include "verify/verify.h"

bool dv_needs_is_required(const struct dv_verify_options *options, const char *name)
{
    for (size_t i = 0; i < options->n_required; i++)
        if (dv_str_eq(options->required[i], dv_str_from_c(name)))
            return true;
    return false;
}

static bool has_hook(const struct dv_verify_options *options, dv_str name)
{
    for (size_t i = 0; i < options->n_hooks; i++)
        if (dv_str_eq(options->hooks[i].name, name))
            return true;
    return false;
}

/* What davit itself cannot do to the driver. */
static const char *miss_of_process(const struct dv_verify_options *options, unsigned needs)
{
    bool is_attached = options->attach.n > 0;

    if ((needs & DV_NEEDS_PROCESS) && is_attached)
        return "davit has to be able to start the driver itself: --exec";
    if ((needs & DV_NEEDS_RESTART) && is_attached &&
        (!has_hook(options, DV_STR("start")) || !has_hook(options, DV_STR("stop")) ||
         !has_hook(options, DV_STR("kill"))))
        return "the driver has to be ended and started: --exec, or the hooks start, stop and kill";
    if ((needs & DV_NEEDS_INSTANCE) &&
        dv_str_find(options->exec, DV_STR("{instance}")) == options->exec.n)
        return "--exec has no {instance}, by which two instances would differ";
    return NULL;
}

const char *dv_needs_miss(const struct dv_verify_options *options, const struct dv_facts *facts,
                          const struct dv_verify_case *test)
{
    static const struct dv_facts none;
    const struct dv_facts *known = facts ? facts : &none;
    const struct {
        unsigned need;
        const char *name;
        bool is_there;
        const char *reason;
    } needs[] = {
        {DV_NEEDS_PREFER,   "prefer",   known->has_prefer,
         "the plugin does not offer GetPreferredAllocation"                                             },
        {DV_NEEDS_PRESTART, "prestart", known->has_prestart,
         "the plugin does not want PreStartContainer"                                                   },
        {DV_NEEDS_HEALTH,   "health",   known->has_health,     "the driver does not offer device health"},
        {DV_NEEDS_SLICES,   "slices",   known->has_slices,
         "the driver publishes no slices for its node"                                                  },
        {DV_NEEDS_CLASSIC,  "classic",  known->is_classic,
         "the plugin does not register by kubelet.sock"                                                 },
        {DV_NEEDS_WATCHER,  "watcher",  known->has_watcher,
         "the plugin has no socket in plugins_registry"                                                 },
        {DV_NEEDS_TWO,      "two",      known->n_devices >= 2, "the driver has fewer than two devices"  },
    };
    const char *miss = miss_of_process(options, test->needs);

    if (miss)
        return miss;
    for (size_t i = 0; i < DV_COUNT(needs) && facts; i++)
        if ((test->needs & needs[i].need) && !needs[i].is_there &&
            !dv_needs_is_required(options, needs[i].name))
            return needs[i].reason;
    if (!facts && !dv_selection_is_named(options, test->id))
        return "the driver did not get so far: see probe";
    return NULL;
}

bool dv_needs_check_hooks(const struct dv_verify_options *options, struct dv_err *err)
{
    static const dv_str names[] = {DV_STR_INIT("unhealthy"), DV_STR_INIT("healthy"),
                                   DV_STR_INIT("empty"),     DV_STR_INIT("many"),
                                   DV_STR_INIT("change"),    DV_STR_INIT("start"),
                                   DV_STR_INIT("stop"),      DV_STR_INIT("kill")};

    for (size_t i = 0; i < options->n_hooks; i++) {
        const struct dv_verify_hook *hook = &options->hooks[i];
        size_t at = 0;

        while (at < DV_COUNT(names) && !dv_str_eq(names[at], hook->name))
            at++;
        if (at == DV_COUNT(names) || hook->command.n == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "--hook is NAME=COMMAND, with the name unhealthy, healthy, empty, many, "
                           "change, start, stop or kill, not \"%.*s\"",
                           DV_FMT(hook->name));
        if (options->attach.n > 0 && dv_str_find(hook->command, DV_STR("{pid}")) < hook->command.n)
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "--hook %.*s has {pid}, which davit does not know of a driver that it "
                           "has not started (--attach)",
                           DV_FMT(hook->name));
    }
    return true;
}
