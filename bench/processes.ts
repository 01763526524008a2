/** The resources that processes use. The processor time is known on Linux only. */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'

/** Clock ticks per second in /proc: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
const TICKS = 100

interface Process {
  pid: number
  parent: number
  /** Seconds of processor time since its start. */
  seconds: number
}

/** Seconds of processor time of a process and its descendants; NaN if unknown. */
export function processorTime(pid: number): number {
  const family = familyOf(pid)
  return family.length === 0
    ? Number.NaN
    : family.reduce((total, { seconds }) => total + seconds, 0)
}

/** Bytes of resident memory of a process and its descendants; 0 after its end. */
export async function residentMemory(pid: number): Promise<number> {
  const pids = [pid, ...familyOf(pid).map((found) => found.pid)]
  const listing = promisify(execFile)('ps', ['-o', 'rss=', '-p', [...new Set(pids)].join()])
  const { stdout } = await listing.catch(() => ({ stdout: '' }))
  const kilobytes = stdout.trim().split(/\s+/).map(Number)
  return kilobytes.reduce((total, size) => total + size, 0) * 1024
}

/**
 * Returns the numbers of the cores that this process may use; none where the system has no /proc:
 * https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
 */
export function allowedCores(): number[] {
  if (!existsSync('/proc/self/status')) return []
  const [, list = ''] =
    /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

/** Restricts a process, with all its threads, to cores, by taskset (util-linux). */
export function pin(pid: number, cores: number[]): void {
  spawnSync('taskset', ['--all-tasks', '--pid', '--cpu-list', cores.join(), String(pid)])
}

/** A process and its descendants; empty without /proc. */
function familyOf(pid: number): Process[] {
  const family: Process[] = []
  const all = allProcesses()
  const add = (found: Process) => {
    family.push(found)
    for (const child of all) if (child.parent === found.pid) add(child)
  }
  for (const root of all) if (root.pid === pid) add(root)
  return family
}

function allProcesses(): Process[] {
  try {
    const names = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return names.flatMap((name) => {
      try {
        return [parseStat(readFileSync(`/proc/${name}/stat`, 'utf8'))]
      } catch {
        return [] // the process has ended
      }
    })
  } catch {
    return []
  }
}

/** The fields of /proc/PID/stat. */
export function parseStat(line: string): Process {
  // The name is in parentheses and may contain any character; the third field follows it.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const field = (number: number) => Number(fields[number - 3])
  return {
    pid: Number.parseInt(line, 10),
    parent: field(4),
    seconds: (field(14) + field(15)) / TICKS,
  }
}
