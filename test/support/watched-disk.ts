/** Notes what a program syncs and renames, in order: mocks `node:fs/promises` with `watchDisk`. */
type Files = typeof import('node:fs/promises')

/** Each `sync` of a file or folder, and each new name, in order. */
export const disk: { done: string[] } = { done: [] }

export const watchDisk = (original: Files): Files => {
  const open: Files['open'] = async (path, ...more) => {
    const handle = await original.open(path, ...more)
    const { sync } = handle
    handle.sync = () => {
      disk.done.push(`sync ${path}`)
      return sync.call(handle)
    }
    return handle
  }
  const rename: Files['rename'] = (from, to) => {
    disk.done.push(`rename ${to}`)
    return original.rename(from, to)
  }
  return { ...original, open, rename }
}
