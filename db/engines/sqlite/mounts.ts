/** The file systems of this process: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html */
import { readFileSync } from 'node:fs'

/** Returns whether something is mounted at a path, which has no links. Always false where there is no Linux. */
export const isMountPoint = (path: string): boolean => mounts().some(({ point }) => point === path)

/** Returns the name of the file system of a path without links, such as `ext4`; undefined where there is no Linux. */
export const fileSystemOf = (path: string): string | undefined =>
  mounts()
    .filter(({ point }) => `${path}/`.startsWith(point === '/' ? point : `${point}/`))
    .toSorted((one, other) => one.point.length - other.point.length) // the later of two at one point hides the other
    .at(-1)?.type

function mounts(): { point: string; type: string }[] {
  let table: string
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return []
  }
  return table
    .trim()
    .split('\n')
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ')
      const escaped = before.split(' ')[4] ?? ''
      const point = escaped.replace(/\\(\d{3})/g, (_, octal) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      )
      return { point, type: after.split(' ')[0] ?? '' }
    })
}
