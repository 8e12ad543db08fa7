/** Labels of instants in a picture: as short as they can be while each differs from the others. */

/** @returns the day of each instant, and below it the time of day, and a number, where days and times are the same */
export const labelsOf = (instants: readonly string[]): string[][] => {
  const days = instants.map(instant => instant.slice(0, 10))
  const times = instants.map(instant => instant.slice(11).replace(/Z$|[+-]\d\d:\d\d$/, ''))
  const isRepeated = (texts: readonly string[]): boolean => new Set(texts).size < texts.length
  if (!isRepeated(days)) return days.map(day => [day])
  const minutes = times.map(time => time.slice(0, 5))
  const enough = [minutes, times].find(those => !isRepeated(days.map((day, at) => `${day} ${those[at]}`)))
  if (enough !== undefined) return days.map((day, at) => [day, enough[at] ?? ''])
  // The same instant twice: their order tells them apart.
  return days.map((day, at) => [day, `${minutes[at]}, ${at + 1}.`])
}
