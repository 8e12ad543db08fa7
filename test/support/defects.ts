/**
 * Defects that a test plants in a real process: on SIGUSR2 a promise is rejected, or an exception thrown, and nothing
 * listens.
 */

const message = 'CANARY org_secret\\n    at CANARY (payout_1)'

const preload = (defect: string): Readonly<Record<string, string>> => {
  // The frames of an error name its file: it must not have the message in its name.
  const module = Buffer.from(`process.on("SIGUSR2", () => { ${defect} })`).toString('base64')
  return { NODE_OPTIONS: `--import=data:text/javascript;base64,${module}` }
}

export const rejectsOnSignal = preload(`void Promise.reject(new TypeError("${message}"))`)
export const throwsOnSignal = preload(`throw new TypeError("${message}")`)
