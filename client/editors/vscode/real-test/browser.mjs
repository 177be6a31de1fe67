// Drives the real editor in a browser: looks at the view, answers a question, kills the daemon, reloads the window.
// Arguments: the directory of node modules, the address of code-server, the folder, the file of findings, the picture.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, address, folder, findingsFile, picture] = process.argv.slice(2);
const require = createRequire(path.join(modules, "x.js"));
const chromium = (await import(require.resolve("@sparticuz/chromium"))).default;
const puppeteer = (await import(require.resolve("puppeteer-core"))).default;

/** The time limit of everything that waits. */
const DEADLINE_MS = 90000;
const POLL_MS = 100;

async function eventually(what, fact) {
  const until = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await fact();
    if (value) return value;
    if (Date.now() > until) throw new Error(`it never came true that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const toolctl = (...args) => execFileSync("toolctl", args, { encoding: "utf8", timeout: 20000 }).trim();

function findings() {
  const lines = fs.readFileSync(findingsFile, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

/** Waits for a finding of the probe. */
async function found(name) {
  return eventually(`the probe found "${name}"`, () => {
    const all = findings();
    const failure = all.find((each) => each.name === "failure");
    if (failure) throw new Error(failure.value);
    return all.find((each) => each.name === name);
  }).then(({ value }) => value);
}

const launched = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: [...chromium.args, "--no-sandbox"],
  headless: "shell",
  defaultViewport: { width: 1200, height: 700 },
});
const page = await launched.newPage();

/** The texts of all elements. Chromium gives spaces of the editor as U+00A0. */
const texts = (selector) => page.$$eval(selector, (all) => all.map((each) => each.textContent.replaceAll("\u00a0", " ")));
const shows = (selector, text) =>
  eventually(`${selector} shows ${text}`, async () => (await texts(selector)).some((each) => each.includes(text))).catch(async (error) => {
    throw new Error(`${error.message}; it has ${JSON.stringify(await texts(selector))}`);
  });
const click = (selector, text) =>
  eventually(`${selector} ${text} is clicked`, () =>
    page.$$eval(
      selector,
      (all, wanted) => {
        const target = all.find((each) => (each.getAttribute("aria-label") ?? each.textContent).includes(wanted));
        target?.click();
        return Boolean(target);
      },
      text,
    ),
  );

async function openWindow() {
  await page.goto(`${address}/?folder=${folder}`, { waitUntil: "domcontentloaded" });
  await page.waitForSelector(".statusbar", { timeout: DEADLINE_MS });
}

try {
  await openWindow();
  assert.deepEqual((await found("activated"))[1], true);
  assert.deepEqual(await found("tasks"), ["build", "serve"]);
  assert.equal(await found("exit code of build"), 7);
  assert.deepEqual(await found("problems"), ["main.c:3: no such thing"]);
  assert.equal(await found("serve after its terminal was closed"), "running");
  assert.equal(await found("serve runs"), true);

  toolctl("exec", "--name", "web", "--label", "x=y", "-c", "for i in 1 2 3; do echo \"listening on socket $i\"; done; exec sleep 600");
  toolctl("exec", "--name", "vault", "--pty", "-c", "stty -echo; printf 'Passphrase: '; read -r a; stty echo; echo; echo got ${#a}; exec sleep 600");
  await shows(".statusbar-item", "3 · 1 asks");
  await page.click('.activitybar [aria-label^="toold"]');
  await shows(".monaco-list-row", "vault");
  await shows(".monaco-list-row", "asks · Passphrase:");
  await shows(".notification-list-item-message", "vault asks: Passphrase:");
  await click(".monaco-list-row .label-name", "web");
  await shows(".view-line", "listening on socket 3");
  await page.screenshot({ path: picture });

  await click(".notification-list-item a.monaco-button, .notification-list-item .monaco-button", "Answer");
  const box = await page.waitForSelector('.quick-input-box input[type="password"]', { visible: true, timeout: DEADLINE_MS });
  await box.type("open sesame");
  await page.keyboard.press("Enter");
  await shows(".monaco-list-row", "running · got 11");
  await shows(".statusbar-item", " 3");

  const { pid } = JSON.parse(toolctl("info", "--json"));
  process.kill(pid, "SIGKILL");
  await shows(".notification-list-item-message", "the daemon is away; processes go on, reconnecting");
  await shows(".statusbar-item", " 3");
  assert.notEqual(JSON.parse(toolctl("info", "--json")).pid, pid);
  toolctl("exec", "--name", "late", "-c", "exit 4");
  await shows(".monaco-list-row", "exited 4");

  await openWindow();
  assert.deepEqual(await found("restored"), ["serve"]);
  assert.deepEqual(await found("exit code after the reload"), ["serve", 5]);
  console.log(findings().map(({ name, value }) => `${name}: ${JSON.stringify(value)}`).join("\n"));
} catch (error) {
  await page.screenshot({ path: `${picture}.failed.png` }).catch(() => undefined);
  console.error(error);
  process.exitCode = 1;
} finally {
  await launched.close();
}
