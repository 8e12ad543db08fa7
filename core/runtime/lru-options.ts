/**
 * Options of an `LRUCache` of at most `entries`. Its own `max` reserves tables for all of them at once: a process makes
 * a dozen of these caches, and each run of the simulation makes them again.
 */
export const lruOptions = (entries: number): { readonly maxSize: number; readonly sizeCalculation: () => number } => ({
  maxSize: entries,
  sizeCalculation: () => 1,
})
