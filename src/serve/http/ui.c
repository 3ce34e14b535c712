#include "serve/http/ui.h"

#include <stddef.h>

#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "rest/rest.h"
#include "serve/ui_files.h"

/* The page may load nothing from elsewhere and run nothing inline, so that a script in an object's
 * name does not run. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct dv_ui_file *find(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(dv_ui_files); i++)
        if (dv_str_eq(dv_str_from_c(dv_ui_files[i].name), name))
            return &dv_ui_files[i];
    return NULL;
}

/* Whether the client has this version: If-None-Match is "*", or lists the tag. */
static bool is_known(const struct dv_rest_request *request, dv_str tag)
{
    dv_str known = dv_rest_request_field(request, DV_STR("If-None-Match"));

    return dv_str_eq(known, DV_STR("*")) || dv_str_find(known, tag) < known.n;
}

static void reply(struct dv_rest_call *call, const struct dv_rest_request *request,
                  const struct dv_ui_file *file)
{
    static const struct {
        dv_str name;
        dv_str value;
    } fields[] = {
        {DV_STR_INIT("Content-Security-Policy"),    DV_STR_INIT(POLICY)       },
        {DV_STR_INIT("X-Content-Type-Options"),     DV_STR_INIT("nosniff")    },
        {DV_STR_INIT("Referrer-Policy"),            DV_STR_INIT("no-referrer")},
        {DV_STR_INIT("Cross-Origin-Opener-Policy"), DV_STR_INIT("same-origin")},
 /* The client asks each time whether the tag has changed. */
        {DV_STR_INIT("Cache-Control"),              DV_STR_INIT("no-cache")   },
    };
    dv_str tag = dv_str_from_c(file->tag);

    for (size_t i = 0; i < DV_COUNT(fields); i++)
        dv_rest_call_add_field(call, fields[i].name, fields[i].value);
    dv_rest_call_add_field(call, DV_STR("ETag"), tag);
    if (is_known(request, tag)) {
        dv_rest_call_reply(call, 304, DV_STR(""));
        return;
    }
    dv_rest_call_add_field(call, DV_STR("Content-Type"), dv_str_from_c(file->type));
    dv_rest_call_reply(call, 200, (dv_str){(const char *)file->bytes, file->n});
}

bool dv_ui_handle(struct dv_rest_call *call, const struct dv_rest_request *request)
{
    const dv_str root = DV_STR("/ui");
    const struct dv_ui_file *file;
    dv_str name;

    if (!dv_str_starts_with(request->path, root) ||
        (request->path.n > root.n && request->path.p[root.n] != '/'))
        return false;
    name = dv_str_slice(request->path, dv_size_min(root.n + 1, request->path.n), request->path.n);
    file = find(name.n ? name : DV_STR("index.html"));
    if (!dv_str_eq(request->method, DV_STR("GET")) && !dv_str_eq(request->method, DV_STR("HEAD"))) {
        dv_rest_call_add_field(call, DV_STR("Allow"), DV_STR("GET, HEAD"));
        dv_rest_call_reply(call, 405, DV_STR("only GET\n"));
    } else if (file) {
        reply(call, request, file);
    } else {
        dv_rest_call_reply(call, 404, DV_STR("no such file\n"));
    }
    return true;
}
