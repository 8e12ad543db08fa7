/** Preloads a defect into a process: on SIGUSR2 an unhandled rejection or an uncaught exception. */

const message = 'CANARY org_secret\\n    at CANARY (payout_1)'

const preload = (defect: string): Readonly<Record<string, string>> => {
  // Stack frames contain the module URL. Base64 hides the message there.
  const module = Buffer.from(`process.on("SIGUSR2", () => { ${defect} })`).toString('base64')
  return { NODE_OPTIONS: `--import=data:text/javascript;base64,${module}` }
}

export const rejectsOnSignal = preload(`void Promise.reject(new TypeError("${message}"))`)
export const throwsOnSignal = preload(`throw new TypeError("${message}")`)
