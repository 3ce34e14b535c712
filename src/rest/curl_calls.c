#include "rest/curl_calls.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/err.h"
#include "rest/curl_library.h"

struct dv_curl_calls dv_curl;

/* Where each function goes, by its name. */
static const struct {
    const char *name;
    size_t offset;
} calls[] = {
#define CALL(name) {"curl_" #name, offsetof(struct dv_curl_calls, name##_)},
    DV_CURL_CALLS(CALL)
#undef CALL
};

bool dv_curl_load(struct dv_err *err)
{
    static void *library; /* stays loaded: its threads and handlers may outlive every client */

    if (library)
        return true;
    library = dlopen(DV_CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < DV_COUNT(calls); i++) {
        void **place = (void **)((char *)&dv_curl + calls[i].offset);

        *place = dlsym(library, calls[i].name);
        if (!*place) {
            (void)dlclose(library);
            library = NULL;
        }
    }
    if (!library)
        return dv_fail(err, DV_FAILED_PRECONDITION, "libcurl cannot be loaded: %s", dlerror());
    return true;
}
