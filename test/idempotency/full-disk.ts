/** Lets a process write no more, as a disk that is full would. */
import { execFileSync } from 'node:child_process'

/** Whether that can be done here: it takes Linux and its `prlimit`. */
export const canFill = process.platform === 'linux'

/** From now on no file of this process grows beyond so many bytes. */
export function fillDisk(pid: number, bytes: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`])
}

/** Lets the process write again. */
export function freeDisk(pid: number): void {
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:unlimited'])
}
