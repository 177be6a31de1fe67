// A stand-in for the module `vscode`: it records what the extension shows, and tests choose what the user answers.
"use strict";

const Module = require("node:module");

class EventEmitter {
  constructor() {
    this.listeners = new Set();
    this.event = (listener) => {
      this.listeners.add(listener);
      return { dispose: () => this.listeners.delete(listener) };
    };
  }
  fire(value) {
    for (const listener of [...this.listeners]) listener(value);
  }
}

/** A place that takes values and lets a test wait for one that it wants. */
class Recorder {
  constructor() {
    this.values = [];
    this.changed = new EventEmitter();
  }
  add(value) {
    this.values.push(value);
    this.changed.fire(value);
  }
}

class Uri {
  static from(parts) {
    return Object.assign(new Uri(), { authority: "", query: "", ...parts });
  }
  static file(path) {
    return Uri.from({ scheme: "file", path });
  }
  get fsPath() {
    return this.path;
  }
  toString() {
    return `${this.scheme}:${this.path}?${this.query}`;
  }
}

class MarkdownString {
  constructor() {
    this.value = "";
  }
  appendText(text) {
    this.value += text;
  }
  appendCodeblock(text) {
    this.value += `${text}\n`;
  }
}

/** Makes a stub of its own for each test. */
function makeStub() {
  const settings = {};
  const shown = new Recorder();
  const answers = { message: async () => undefined, input: async () => undefined, pick: async () => undefined };
  const state = { views: {}, commands: {}, statusBar: null, terminals: [], executed: [], providers: {}, documents: {}, clipboard: "" };
  const record = (level) => async (message, ...rest) => {
    shown.add({ level, message });
    return answers.message(message, ...rest);
  };
  const disposable = { dispose() {} };
  const closedDocuments = new EventEmitter();
  const vscode = {
    EventEmitter,
    MarkdownString,
    Uri,
    TreeItem: class {
      constructor(label, collapsibleState) {
        Object.assign(this, { label, collapsibleState });
      }
    },
    ThemeIcon: class {
      constructor(id, color) {
        Object.assign(this, { id, color });
      }
    },
    ThemeColor: class {
      constructor(id) {
        this.id = id;
      }
    },
    Task: class {
      constructor(definition, scope, name, source, execution, problemMatchers) {
        Object.assign(this, { definition, scope, name, source, execution, problemMatchers });
      }
    },
    CustomExecution: class {
      constructor(callback) {
        this.callback = callback;
      }
    },
    McpStdioServerDefinition: class {
      constructor(label, command, args, env) {
        Object.assign(this, { label, command, args, env });
      }
    },
    TreeItemCollapsibleState: { None: 0, Collapsed: 1, Expanded: 2 },
    StatusBarAlignment: { Left: 1, Right: 2 },
    TaskScope: { Global: 1, Workspace: 2 },
    TaskRevealKind: { Always: 1, Silent: 2, Never: 3 },
    TaskPanelKind: { Shared: 1, Dedicated: 2, New: 3 },
    env: { shell: "/bin/sh", clipboard: { writeText: async (text) => void (state.clipboard = text) } },
    window: {
      activeTerminal: undefined,
      showInformationMessage: record("info"),
      showWarningMessage: record("warning"),
      showErrorMessage: record("error"),
      showInputBox: async (options) => {
        shown.add({ level: "input", ...options });
        return answers.input(options);
      },
      showQuickPick: async (items) => answers.pick(items),
      showTextDocument: async () => undefined,
      createTreeView: (id, { treeDataProvider }) => (state.views[id] = { ...disposable, provider: treeDataProvider, badge: undefined }),
      createStatusBarItem: () => (state.statusBar = { ...disposable, text: "", show() {} }),
      createTerminal: (options) => {
        const terminal = { ...options, show() {} };
        state.terminals.push(terminal);
        return terminal;
      },
    },
    workspace: {
      workspaceFolders: undefined,
      getConfiguration: () => ({ get: (name, fallback) => settings[name] ?? fallback }),
      registerTextDocumentContentProvider: (scheme, provider) => {
        state.documents[scheme] = provider;
        return disposable;
      },
      onDidCloseTextDocument: closedDocuments.event,
      openTextDocument: async (uri) => ({ uri, text: await state.documents[uri.scheme].provideTextDocumentContent(uri) }),
    },
    commands: {
      registerCommand: (name, run) => {
        state.commands[name] = run;
        return disposable;
      },
    },
    tasks: {
      registerTaskProvider: (type, provider) => {
        state.providers[type] = provider;
        return disposable;
      },
      executeTask: async (task) => void state.executed.push(task),
    },
    lm: {
      registerMcpServerDefinitionProvider: (id, provider) => {
        state.mcp = { id, provider };
        return disposable;
      },
    },
  };
  return { vscode, settings, shown, answers, state, closedDocuments };
}

/** The stub that `require("vscode")` gives to the sources. */
const stub = makeStub();
const load = Module._load;
Module._load = (request, ...rest) => (request === "vscode" ? stub.vscode : load(request, ...rest));

module.exports = { stub, EventEmitter };
