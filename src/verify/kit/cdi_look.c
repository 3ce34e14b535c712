#include "verify/kit/cdi_look.h"

#include "base/err.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "verify/kit/trial.h"

bool dv_cdi_look(struct dv_trial *trial, dv_str name, struct dv_err *err)
{
    const dv_str dirs[] = {DV_STR("/etc/cdi"), DV_STR("/var/run/cdi"), trial->paths.cdi};
    struct dv_cdi_reading reading;
    struct dv_cdi_index *index;
    struct dv_cdi_edits edits;
    struct dv_cdi_name parts;
    bool is_found;

    if (!dv_cdi_name_parse(name, &parts, err))
        return dv_wrap(err, "CDI name \"%.*s\"", DV_FMT(name));
    dv_cdi_dirs_read(dirs, DV_COUNT(dirs), trial->arena, &reading);
    index = dv_cdi_index_new(reading.specs, reading.n_specs);
    is_found = dv_cdi_resolve(index, &name, 1, trial->arena, &edits, err);
    dv_cdi_index_free(index);
    dv_cdi_reading_fini(&reading);
    return is_found;
}
