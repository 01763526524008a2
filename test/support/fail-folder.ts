/**
 * Loaded into a process of the service, beside its own code: the folder of the migrations cannot be
 * read the first time, as when the process has no file left to open.
 */
import fs from 'node:fs/promises'

const { readdir } = fs
let hasFailed = false

fs.readdir = ((...parameters: Parameters<typeof readdir>) => {
  if (hasFailed || !/migrations\/?$/.test(String(parameters[0]))) return readdir(...parameters)
  hasFailed = true
  return Promise.reject(Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }))
}) as typeof readdir // its overloads differ in what they give, not in how they are called
