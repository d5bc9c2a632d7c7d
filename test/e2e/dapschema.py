# SPDX-License-Identifier: MIT
"""The part of the Debug Adapter Protocol's schema that an adapter's messages are checked with, written down from its
specification (microsoft.github.io/debug-adapter-protocol/specification, version 1.68).

A type is the name of a JSON type, a name of TYPES, a tuple of the strings that it may be, [type] for a list, or a dict of
properties.  A property whose name ends in ? may be missing; one that is not named here is wrong."""

TYPES = {
    "Source": {"name?": "string", "path?": "string", "sourceReference?": "integer", "presentationHint?": ("normal", "emphasize", "deemphasize"),
               "origin?": "string", "sources?": ["Source"], "adapterData?": "any", "checksums?": ["any"]},
    "Breakpoint": {"id?": "integer", "verified": "boolean", "message?": "string", "source?": "Source", "line?": "integer", "column?": "integer",
                   "endLine?": "integer", "endColumn?": "integer", "instructionReference?": "string", "offset?": "integer", "reason?": ("pending", "failed")},
    "StackFrame": {"id": "integer", "name": "string", "source?": "Source", "line": "integer", "column": "integer", "endLine?": "integer",
                   "endColumn?": "integer", "canRestart?": "boolean", "instructionPointerReference?": "string", "moduleId?": "any",
                   "presentationHint?": ("normal", "label", "subtle")},
    "Scope": {"name": "string", "presentationHint?": "string", "variablesReference": "integer", "namedVariables?": "integer",
              "indexedVariables?": "integer", "expensive": "boolean", "source?": "Source", "line?": "integer", "column?": "integer", "endLine?": "integer",
              "endColumn?": "integer"},
    "VariablePresentationHint": {"kind?": "string", "attributes?": ["string"], "visibility?": "string", "lazy?": "boolean"},
    "Variable": {"name": "string", "value": "string", "type?": "string", "presentationHint?": "VariablePresentationHint", "evaluateName?": "string",
                 "variablesReference": "integer", "namedVariables?": "integer", "indexedVariables?": "integer", "memoryReference?": "string"},
    "Thread": {"id": "integer", "name": "string"},
    "Module": {"id": "any", "name": "string", "path?": "string", "isOptimized?": "boolean", "isUserCode?": "boolean", "version?": "string",
               "symbolStatus?": "string", "symbolFilePath?": "string", "dateTimeStamp?": "string", "addressRange?": "string"},
    "GotoTarget": {"id": "integer", "label": "string", "line": "integer", "column?": "integer", "endLine?": "integer", "endColumn?": "integer",
                   "instructionPointerReference?": "string"},
    "CompletionItem": {"label": "string", "text?": "string", "sortText?": "string", "detail?": "string", "type?": "string", "start?": "integer",
                       "length?": "integer", "selectionStart?": "integer", "selectionLength?": "integer"},
    "DisassembledInstruction": {"address": "string", "instructionBytes?": "string", "instruction": "string", "symbol?": "string", "location?": "Source",
                                "line?": "integer", "column?": "integer", "endLine?": "integer", "endColumn?": "integer",
                                "presentationHint?": ("normal", "invalid")},
    "ExceptionDetails": {"message?": "string", "typeName?": "string", "fullTypeName?": "string", "evaluateName?": "string", "stackTrace?": "string",
                         "innerException?": ["ExceptionDetails"]},
    "Filter": {"filter": "string", "label": "string", "description?": "string", "default?": "boolean", "supportsCondition?": "boolean",
               "conditionDescription?": "string"},
    "Capabilities": {**{name + "?": "boolean" for name in (
        "supportsConfigurationDoneRequest supportsFunctionBreakpoints supportsConditionalBreakpoints supportsHitConditionalBreakpoints "
        "supportsEvaluateForHovers supportsStepBack supportsSetVariable supportsRestartFrame supportsGotoTargetsRequest supportsStepInTargetsRequest "
        "supportsCompletionsRequest supportsModulesRequest supportsRestartRequest supportsExceptionOptions supportsValueFormattingOptions "
        "supportsExceptionInfoRequest supportTerminateDebuggee supportSuspendDebuggee supportsDelayedStackTraceLoading supportsLoadedSourcesRequest "
        "supportsLogPoints supportsTerminateThreadsRequest supportsSetExpression supportsTerminateRequest supportsDataBreakpoints "
        "supportsReadMemoryRequest supportsWriteMemoryRequest supportsDisassembleRequest supportsCancelRequest supportsBreakpointLocationsRequest "
        "supportsClipboardContext supportsSteppingGranularity supportsInstructionBreakpoints supportsExceptionFilterOptions "
        "supportsSingleThreadExecutionRequests supportsDataBreakpointBytes supportsANSIStyling").split()},
        "exceptionBreakpointFilters?": ["Filter"], "completionTriggerCharacters?": ["string"], "additionalModuleColumns?": ["any"],
        "supportedChecksumAlgorithms?": ["string"], "breakpointModes?": ["any"]},
    "Message": {"id": "integer", "format": "string", "variables?": "any", "sendTelemetry?": "boolean", "showUser?": "boolean", "url?": "string",
                "urlLabel?": "string"},
    "BreakpointLocation": {"line": "integer", "column?": "integer", "endLine?": "integer", "endColumn?": "integer"},
}
BREAKPOINTS = {"breakpoints": ["Breakpoint"]}

# Bodies of responses; None: there may be none, or anything.
RESPONSES = {
    "initialize": "Capabilities", "launch": None, "attach": None, "configurationDone": None, "disconnect": None, "terminate": None, "cancel": None,
    "restart": None, "next": None, "stepIn": None, "stepOut": None, "stepBack": None, "reverseContinue": None, "goto": None, "pause": None,
    "continue": {"allThreadsContinued?": "boolean"},
    "setBreakpoints": BREAKPOINTS, "setFunctionBreakpoints": BREAKPOINTS, "setInstructionBreakpoints": BREAKPOINTS, "setDataBreakpoints": BREAKPOINTS,
    "setExceptionBreakpoints": {"breakpoints?": ["Breakpoint"]},
    "dataBreakpointInfo": {"dataId": "string or null", "description": "string", "accessTypes?": [("read", "write", "readWrite")], "canPersist?": "boolean"},
    "threads": {"threads": ["Thread"]},
    "stackTrace": {"stackFrames": ["StackFrame"], "totalFrames?": "integer"},
    "scopes": {"scopes": ["Scope"]},
    "variables": {"variables": ["Variable"]},
    "evaluate": {"result": "string", "type?": "string", "presentationHint?": "VariablePresentationHint", "variablesReference": "integer",
                 "namedVariables?": "integer", "indexedVariables?": "integer", "memoryReference?": "string"},
    "completions": {"targets": ["CompletionItem"]},
    "exceptionInfo": {"exceptionId": "string", "description?": "string", "breakMode": ("never", "always", "unhandled", "userUnhandled"),
                      "details?": "ExceptionDetails"},
    "modules": {"modules": ["Module"], "totalModules?": "integer"},
    "source": {"content": "string", "mimeType?": "string"},
    "loadedSources": {"sources": ["Source"]},
    "breakpointLocations": {"breakpoints": ["BreakpointLocation"]},
    "gotoTargets": {"targets": ["GotoTarget"]},
    "readMemory": {"address": "string", "unreadableBytes?": "integer", "data?": "string"},
    "disassemble": {"instructions": ["DisassembledInstruction"]},
}
EVENTS = {
    "initialized": None, "terminated": {"restart?": "any"}, "exited": {"exitCode": "integer"},
    "stopped": {"reason": "string", "description?": "string", "threadId?": "integer", "preserveFocusHint?": "boolean", "text?": "string",
                "allThreadsStopped?": "boolean", "hitBreakpointIds?": ["integer"]},
    "output": {"category?": ("console", "important", "stdout", "stderr", "telemetry"), "output": "string", "group?": "string",
               "variablesReference?": "integer", "source?": "Source", "line?": "integer", "column?": "integer", "data?": "any"},
    "process": {"name": "string", "systemProcessId?": "integer", "isLocalProcess?": "boolean",
                "startMethod?": ("launch", "attach", "attachForSuspendedLaunch"), "pointerSize?": "integer"},
    "capabilities": {"capabilities": "Capabilities"},
    "progressStart": {"progressId": "string", "title": "string", "requestId?": "integer", "cancellable?": "boolean", "message?": "string",
                      "percentage?": "number"},
    "progressUpdate": {"progressId": "string", "message?": "string", "percentage?": "number"},
    "progressEnd": {"progressId": "string", "message?": "string"},
    "continued": {"threadId": "integer", "allThreadsContinued?": "boolean"},
    "thread": {"reason": "string", "threadId": "integer"},
    "breakpoint": {"reason": "string", "breakpoint": "Breakpoint"},
    "module": {"reason": ("new", "changed", "removed"), "module": "Module"},
    "loadedSource": {"reason": ("new", "changed", "removed"), "source": "Source"},
    "invalidated": {"areas?": ["string"], "threadId?": "integer", "stackFrameId?": "integer"},
}
_JSON = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}


def _check(kind, value, where):
    if kind is None or kind == "any":
        return
    if isinstance(kind, tuple):
        assert value in kind, (where, value, kind)
    elif isinstance(kind, list):
        assert isinstance(value, list), (where, value)
        for i, one in enumerate(value):
            _check(kind[0], one, "%s[%d]" % (where, i))
    elif isinstance(kind, dict):
        assert isinstance(value, dict), (where, value)
        names = {name.rstrip("?") for name in kind}
        assert set(value) <= names, (where, set(value) - names)
        for name, inner in kind.items():
            if name.rstrip("?") in value:
                _check(inner, value[name.rstrip("?")], where + "." + name.rstrip("?"))
            else:
                assert name.endswith("?"), (where, name, value)
    elif kind == "string or null":
        assert value is None or isinstance(value, str), (where, value)
    elif kind in _JSON:
        assert isinstance(value, _JSON[kind]) and (kind == "boolean" or not isinstance(value, bool)), (where, value, kind)
    else:
        _check(TYPES[kind], value, where)


def check(message, before):
    """`before`: seq of the message before."""
    assert message["seq"] == before + 1, (before, message)
    if message["type"] == "event":
        _check({"seq": "integer", "type": "string", "event": "string", "body?": "any"}, message, "event")
        if not message["event"].startswith("tbd"):
            assert message["event"] in EVENTS, message
            _check(EVENTS[message["event"]], message.get("body", {}), message["event"])
        return
    assert message["type"] == "response", message
    _check({"seq": "integer", "type": "string", "request_seq": "integer", "success": "boolean", "command": "string", "message?": "string", "body?": "any"},
           message, "response")
    if not message["success"]:
        assert message.get("message"), message
        _check({"error?": "Message"}, message.get("body", {}), "error")
    elif message["command"] in RESPONSES:
        _check(RESPONSES[message["command"]], message.get("body", {}), message["command"])
