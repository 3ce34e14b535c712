/* service_manager_none.c - a davitd that was built without systemd tells no service manager. */
#include "daemon/service_manager.h"

void dv_service_manager_tell_ready(void)
{
}

void dv_service_manager_tell_stopping(void)
{
}

void dv_service_manager_feed_watchdog(void)
{
}

uint64_t dv_service_manager_watchdog_us(void)
{
    return 0;
}
