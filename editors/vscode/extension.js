// SPDX-License-Identifier: MIT
/* extension.js - tbd in VS Code: starts `tbdq dap`, and adds what the Debug Adapter Protocol has no word for
 *
 * Plain JavaScript: there is no build step.  All knowledge is in tbdq; docs/EDITORS.md has its requests. */
'use strict';

const vscode = require('vscode');

/** The running session of ours; undefined after a message. */
function session() {
    const active = vscode.debug.activeDebugSession;
    if (active !== undefined && active.type === 'tbd')
        return active;
    vscode.window.showInformationMessage('No recording is being debugged.');
    return undefined;
}

/** Carries out `work` with the session; shows why it failed. */
function withSession(work) {
    return async (...args) => {
        const active = session();
        if (active === undefined)
            return;
        try {
            await work(active, ...args);
        } catch (error) {
            vscode.window.showErrorMessage(`tbd: ${error.message}`);
        }
    };
}

/** The word, or the selection, at the editor's cursor. */
function wordAtCursor() {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined)
        return '';
    const range = editor.selection.isEmpty ? editor.document.getWordRangeAtPosition(editor.selection.active) : editor.selection;
    return range === undefined ? '' : editor.document.getText(range);
}

/** The frame that the user has selected, if the editor says which. */
function frameId() {
    const item = vscode.debug.activeStackItem;
    return item !== undefined && item.frameId !== undefined ? item.frameId : 0;
}

function threadId() {
    const item = vscode.debug.activeStackItem;
    return item !== undefined && item.threadId !== undefined ? item.threadId : 0;
}

/** `item` is what the menu of the variables' view gives: the container's reference and the variable's name. */
async function lastWrite(active, item) {
    if (item !== undefined && item.variable !== undefined) {
        const name = item.variable.evaluateName;
        await active.customRequest('tbdLastWrite', name !== undefined ? { name, frameId: frameId() } :
            { name: item.variable.name, variablesReference: item.container.variablesReference });
        return;
    }
    const name = await vscode.window.showInputBox({ prompt: 'A variable or expression', value: wordAtCursor() });
    if (name)
        await active.customRequest('tbdLastWrite', { name, frameId: frameId() });
}

async function goToPosition(active, position) {
    await active.customRequest('evaluate', { expression: `goto ${position}`, context: 'repl' });
}

/** A list of all calls that fit; choosing one goes there. */
async function callers(active) {
    const name = await vscode.window.showInputBox({ prompt: 'A function', value: wordAtCursor() });
    if (!name)
        return;
    const condition = await vscode.window.showInputBox({ prompt: `Calls of ${name} with which arguments? Empty: all`, placeHolder: 'n > 100 and arg1 == 0' });
    if (condition === undefined)
        return;
    const answer = await active.customRequest('tbdAsk', { line: `calls ${name}${condition ? ` where ${condition}` : ''}` });
    const rows = answer.rows.filter((row) => row.time !== undefined);
    if (rows.length === 0) {
        vscode.window.showInformationMessage(`There is no such call of ${name}.`);
        return;
    }
    const chosen = await vscode.window.showQuickPick(rows.map((row) => ({
        label: (row.values || []).join(', ') || name,
        description: `${row.time}+${row.offset || 0}`,
        detail: row.result === undefined ? '' : `returned ${row.result}`,
    })), { placeHolder: `${rows.length} calls` });
    if (chosen !== undefined)
        await goToPosition(active, chosen.description);
}

async function goTo(active) {
    const position = await vscode.window.showInputBox({ prompt: 'A position or a question', placeHolder: 'first, 1234+5, current backward store 1 of head' });
    if (position)
        await goToPosition(active, position);
}

/** The time line in the status bar: where in the recording the program stands. */
function showPosition(bar, body) {
    const part = body.blocks > 1 ? body.time / (body.blocks - 1) : 1;
    const cells = 12;
    const at = Math.round(part * (cells - 1));
    bar.text = `$(history) ${'─'.repeat(at)}●${'─'.repeat(cells - 1 - at)} ${body.time}+${body.offset}`;
    bar.tooltip = `Block entry ${body.time} of ${body.blocks} (${(part * 100).toFixed(1)} %). Click to go elsewhere.`;
    bar.show();
}

function activate(context) {
    const bar = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left, 1);
    bar.command = 'tbd.goTo';
    context.subscriptions.push(
        bar,
        vscode.debug.registerDebugAdapterDescriptorFactory('tbd', {
            createDebugAdapterDescriptor: () =>
                new vscode.DebugAdapterExecutable(vscode.workspace.getConfiguration('tbd').get('tbdq', 'tbdq'), ['dap']),
        }),
        vscode.debug.registerDebugConfigurationProvider('tbd', {
            /* F5 without a launch.json opens the latest recording. */
            resolveDebugConfiguration: (_folder, configuration) =>
                configuration.type ? configuration : { type: 'tbd', request: 'launch', name: 'The latest recording' },
        }),
        vscode.debug.onDidReceiveDebugSessionCustomEvent((event) => {
            if (event.session.type === 'tbd' && event.event === 'tbdPosition')
                showPosition(bar, event.body);
        }),
        vscode.debug.onDidTerminateDebugSession((ended) => {
            if (ended.type === 'tbd')
                bar.hide();
        }),
        vscode.commands.registerCommand('tbd.lastWrite', withSession(lastWrite)),
        vscode.commands.registerCommand('tbd.callers', withSession(callers)),
        vscode.commands.registerCommand('tbd.goTo', withSession(goTo)),
        vscode.commands.registerCommand('tbd.stepBackIn', withSession((active) => active.customRequest('tbdStepBackIn', { threadId: threadId() }))),
        vscode.commands.registerCommand('tbd.stepBackOut', withSession((active) => active.customRequest('tbdStepBackOut', { threadId: threadId() }))));
}

function deactivate() {
}

module.exports = { activate, deactivate };
