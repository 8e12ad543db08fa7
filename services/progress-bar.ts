/** Shows progress: a bar on a terminal, else a line for each 10 %. */
import { Presets, SingleBar } from 'cli-progress'
import type { ReportProgress, Say } from './service.ts'

/** Returns a function that shows progress on this output. */
export const progressBar = (output: { readonly isTTY?: boolean }, say: Say): ReportProgress =>
  output.isTTY ? drawnBar() : printedTenths(say)

const drawnBar = (): ReportProgress => {
  const bar = new SingleBar({ format: '{what} {bar} {percentage} %', clearOnComplete: true }, Presets.shades_classic)
  return ({ what, done, total }) => {
    if (!bar.isActive) bar.start(total, done, { what })
    bar.update(done)
    if (done === total) bar.stop()
  }
}

const printedTenths = (say: Say): ReportProgress => {
  let lastTenths = 0
  return ({ what, done, total }) => {
    const tenths = Math.floor((10 * done) / total)
    if (tenths > lastTenths) say(`${what}: ${tenths}0 %`)
    lastTenths = tenths
  }
}
