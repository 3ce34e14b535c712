/* ui_none.c - a davitd that was built without the web page says so. */
#include "serve/http/ui.h"

/* davit was built without the page: /ui is a path like any other that the API does not know. */
bool dv_ui_handle(struct dv_rest_call *call, const struct dv_rest_request *request)
{
    (void)call;
    (void)request;
    return false;
}
