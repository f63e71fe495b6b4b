// From failures (values) to JavaScript errors. JavaScript thread.
#pragma once

#include <napi.h>

#include "engine/types.h"

namespace tokenloop {

// An Error with the properties `code`, `status` and `param`; src/errors.ts turns it into the public class.
Napi::Error ToError(Napi::Env env, const Failure& failure);

}  // namespace tokenloop
