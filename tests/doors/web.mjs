// Opens the page of `toolctl web` in a real browser, clicks, and prints what it saw as one line of JSON.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [url, chromium, pictures] = process.argv.slice(2);
const puppeteer = createRequire(join(process.env.TOOLD_TEST_MODULES, "x.js"))("puppeteer-core");
const profile = mkdtempSync(join(tmpdir(), "browser-"));
const browser = await (puppeteer.default ?? puppeteer).launch({
  executablePath: chromium,
  userDataDir: profile,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"],
});
const seen = { errors: [] };
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 960, height: 540 });
  page.on("pageerror", error => seen.errors.push(error.message));
  page.on("console", message => { if (message.type() === "error") seen.errors.push(message.text()); });
  page.on("dialog", dialog => dialog.accept());
  await page.goto(url);
  const until = (fact, ...args) => page.waitForFunction(fact, { timeout: 20000 }, ...args);
  const rows = () => page.$$eval("tr.row", all => all.map(row => `${row.cells[1].textContent} ${row.cells[2].textContent}`));
  await until(() => document.querySelectorAll("tr.row").length === 2);
  seen.location = await page.evaluate(() => location.pathname + location.search);
  seen.rows = (await rows()).map(row => row.replace("asks", "running"));
  await page.evaluate(() => [...document.querySelectorAll("tr.row")].find(row => row.cells[1].textContent === "web").click());
  await until(() => document.querySelector("#log .err")?.textContent.includes("oops"));
  seen.stderr_is_red = await page.$eval("#log .err", node => getComputedStyle(node).color === "rgb(221, 51, 51)");
  await page.type("#line", "hello");
  await page.click("#answer button");
  await until(() => document.querySelector("#log").textContent.includes("got hello"));
  seen.answered = true;
  await page.screenshot({ path: join(pictures, "list.png") });
  await page.type("#filter", "test");
  seen.filtered = await rows();
  await page.$eval("#filter", input => { input.value = ""; input.dispatchEvent(new Event("input")); });
  await page.type("#grep", "test_x\n");
  await until(() => document.querySelector("#log .hit"));
  seen.found = await page.$eval("#log .hit", node => node.textContent);
  await page.click("#owners");
  seen.owners = await page.$$eval("tr.owner", all => all.some(row => row.textContent.startsWith("chat:1 (1)")));
  await page.evaluate(() => [...document.querySelectorAll("tr.row")].find(row => row.cells[1].textContent === "web").click());
  await until(() => !document.querySelector("#kill").hidden);
  await page.click("#kill");
  await until(() => [...document.querySelectorAll("tr.row")].some(row => row.cells[1].textContent === "web" && row.cells[2].textContent === "killed"));
  seen.killed = true;
  seen.cookie_is_hidden = await page.evaluate(() => document.cookie === "");
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(seen));
