# The images of this project. `service`: the projector, the API and the creation of the topics; the command says which
# one runs. `tools`: the commands of operators and analysts, with their packages. `explorer`: the page for people, served by
# nginx. `docker build .` makes `service`.
FROM node:24.21-slim AS packages
WORKDIR /image/app
COPY package.json package-lock.json .npmrc ./
COPY deploy/image/packages.sh /

FROM packages AS service-files
RUN /packages.sh --workspaces=false
COPY schemas schemas
COPY core core
COPY projector projector
COPY api api
# The admin ports show it.
COPY docs/runbooks.md docs/
# The modes and times of a clone differ from machine to machine. With one mode and one time for all, two builds give the same layer.
RUN chmod -R u=rwX,go=rX /image/app && find /image/app -exec touch -h -d @0 {} +

FROM packages AS tools-files
COPY tools/package.json tools/
RUN /packages.sh --workspace=tools --include-workspace-root
COPY schemas schemas
COPY core core
COPY tools tools
COPY contract/records.ndjson contract/
# The command `commission` is on the PATH.
RUN mkdir -p /image/usr/local/bin && ln -s /app/tools/bin/commission.mjs /image/usr/local/bin/commission \
 && chmod -R u=rwX,go=rX /image && find /image -exec touch -h -d @0 {} +

FROM packages AS explorer-files
COPY explorer/package.json explorer/
COPY client/package.json client/
RUN npm ci --omit=dev --ignore-scripts --workspace=explorer --workspace=commission-client
COPY tsconfig.json ./
COPY client/src client/src
COPY explorer explorer
RUN npm run build --workspace=explorer -- --outDir /image/usr/share/commission-explorer --emptyOutDir
COPY deploy/chart/files/explorer.conf /image/etc/nginx/nginx.conf
# The layer has no file of the stage before.
RUN rm -rf /image/app && chmod -R u=rwX,go=rX /image && find /image -exec touch -h -d @0 {} +

FROM nginx:1.28-alpine-slim AS explorer
# As in the other images. It writes to /tmp only: mount a file system there if that of the root is read-only.
USER 1000:1000
ENTRYPOINT []
COPY --from=explorer-files /image /
LABEL org.opencontainers.image.title=commission-explorer \
      org.opencontainers.image.description="A page for people: what is owed, why, what it was before, and what was paid" \
      org.opencontainers.image.version=1.1.0
HEALTHCHECK --interval=10s --timeout=5s --retries=6 CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/explorer/"]
CMD ["nginx", "-e", "stderr", "-g", "daemon off;"]

FROM node:24.21-slim AS base
ENV NODE_ENV=production NODE_OPTIONS=--disable-warning=TimeoutNegativeWarning
# The user owns nothing in /app, and the processes write no file there: the root file system may be read-only. The user is
# `node`, as a number: Kubernetes checks that a user is not root, and cannot check a name.
USER 1000:1000
# Without the base image's shell script in front: Node gets the signals.
ENTRYPOINT []

FROM base AS tools
# One layer, and before WORKDIR: if WORKDIR made the directory, it would have the time of the build.
COPY --from=tools-files /image /
WORKDIR /app
LABEL org.opencontainers.image.title=commission-tools \
      org.opencontainers.image.description="The commands of operators and analysts" \
      org.opencontainers.image.version=1.1.0
CMD ["commission", "--help"]

FROM base AS service
COPY --from=service-files /image /
WORKDIR /app
LABEL org.opencontainers.image.title=commission-api \
      org.opencontainers.image.description="Projects commission events from Kafka into Elasticsearch and serves them over a read-only HTTP API" \
      org.opencontainers.image.version=1.1.0
# The process that runs here, projector or API, tells on its admin port whether it is alive. Kubernetes has its own probes.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 CMD ["node", "-e", "const live = port => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || Promise.reject()); Promise.any([live(process.env.API_ADMIN_PORT || 9464), live(process.env.PROJECTOR_ADMIN_PORT || 9465)]).then(() => process.exit(0), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=16", "projector/main.ts"]
