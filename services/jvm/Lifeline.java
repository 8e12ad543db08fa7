import java.io.IOException;
import java.io.InputStream;

/**
 * Ties this process to the one that started it. Standard input is a pipe from the starter: it ends when the starter does,
 * however that ends (also by SIGKILL), and then this process and its folder go too.
 */
final class Lifeline {
    private Lifeline() {}

    static void hold(String folder) {
        Thread watcher = new Thread(() -> {
            waitForEnd(System.in);
            letGo(folder);
        }, "lifeline");
        watcher.setDaemon(true);
        watcher.start();
    }

    private static void waitForEnd(InputStream pipe) {
        try {
            while (pipe.read() >= 0) {
                // Nothing is ever sent; only the end matters.
            }
        } catch (IOException broken) {
            // A pipe that breaks is a starter that is gone.
        }
    }

    /** A shell deletes the folder after us: while this process lives, its own threads would write into it again. */
    private static void letGo(String folder) {
        try {
            new ProcessBuilder("/bin/sh", "-c", "kill -KILL \"$0\"; rm -rf \"$1\" || { sleep 1; rm -rf \"$1\"; }",
                Long.toString(ProcessHandle.current().pid()), folder)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start()
                .waitFor();
        } catch (IOException | InterruptedException failed) {
            failed.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }
}
