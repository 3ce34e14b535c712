// browser.mjs - a browser that is told what to do: a JSON command a line on stdin, an answer each.
//
//     browser.mjs CHROMIUM
//
// A command is {"do": NAME, ...}; the answer is {"ok": VALUE} or {"error": TEXT}.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const browser = await chromium.launch({
  executablePath: process.argv[2],
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
const PATIENCE_MS = 80000;
let context;
let page;
let complaints = [];

const commands = {
  // A fresh browser profile, and the page in it.
  async open({ url, width = 1280, height = 860, scheme = "light", ratio = 1 }) {
    await context?.close();
    context = await browser.newContext({
      viewport: { width, height }, colorScheme: scheme, deviceScaleFactor: ratio, ignoreHTTPSErrors: true,
    });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    complaints = [];
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    page.on("console", (message) => message.type() === "error" && complaints.push(`console: ${message.text()}`));
    page.on("requestfailed", (request) => {
      const text = request.failure()?.errorText ?? "";
      if (text !== "net::ERR_ABORTED") complaints.push(`request: ${request.url()} ${text}`);
    });
    page.on("dialog", (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.goto(url);
  },
  // Until the expression, which is run in the page, holds. Asked from here: the page's policy
  // lets nobody wait in it by means of eval.
  async until({ expression }) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await page.evaluate(expression))) {
      if (Date.now() > end) throw new Error(`not before long: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  },
  eval: ({ expression }) => page.evaluate(expression),
  text: ({ selector }) => page.locator(selector).innerText(),
  fill: ({ selector, value }) => page.fill(selector, value),
  click: ({ selector, x, y }) => page.click(selector, x === undefined ? {} : { position: { x, y } }),
  choose: ({ selector, value }) => page.selectOption(selector, value).then(() => null),
  back: () => page.goBack().then(() => null),
  focus: ({ selector }) => page.focus(selector),
  press: ({ key }) => page.keyboard.press(key),
  hover: ({ selector, x, y }) => page.hover(selector, { position: { x, y } }),
  size: ({ width, height }) => page.setViewportSize({ width, height }),
  scheme: ({ scheme }) => page.emulateMedia({ colorScheme: scheme }),
  // Until what was changed has been drawn: the page draws a few times a second.
  settle: () => page.evaluate(() => new Promise((resolve) => {
    setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => resolve(null))), 400);
  })),
  async shot({ path, whole = false }) {
    await page.screenshot({ path, fullPage: whole });
  },
  complaints: () => complaints.splice(0),
};

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    answer = { ok: (await commands[command.do](command)) ?? null };
  } catch (error) {
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
}
await browser.close();
